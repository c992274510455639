// A control group with little memory, for one process that is to be killed for using more.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace tacho::crash {

class MemoryCgroup {
 public:
  explicit MemoryCgroup(uint64_t limit_bytes);
  MemoryCgroup(const MemoryCgroup&) = delete;
  MemoryCgroup& operator=(const MemoryCgroup&) = delete;
  // Its processes have ended.
  ~MemoryCgroup();

  // Why there is none; empty if there is.
  const std::string& trouble() const { return trouble_; }
  // Whether the calling process is in it now. To be called in a child.
  bool Enter() const;

 private:
  std::string path_;
  std::string trouble_;
};

}  // namespace tacho::crash
