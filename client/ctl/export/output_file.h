// A file that is there as a whole, or not at all.
#pragma once

#include <memory>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tacho::ctl {

// Written under a name of its own, ".NAME.PID.partial" beside the target, and moved to its place by
// Commit(). One thread.
class OutputFile {
 public:
  //   NOT_FOUND, PERMISSION_DENIED, …  as the system says; the text names the path.
  static absl::StatusOr<std::unique_ptr<OutputFile>> Create(const std::string& path);
  // Everything goes to `out` at once; Commit() only flushes.
  static std::unique_ptr<OutputFile> To(std::ostream* out);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();  // What is not committed is removed.

  //   RESOURCE_EXHAUSTED, …  the disk refuses. For a stream: CANCELLED, its reader has gone.
  absl::Status Write(absl::string_view bytes);
  // Makes it durable, and replaces what was at the path.
  absl::Status Commit();

 private:
  OutputFile() = default;
  absl::Status Flush();

  std::string path_;
  std::string partial_;
  int fd_ = -1;
  std::ostream* out_ = nullptr;
  std::string buffer_;
};

// The name under which what shall be `path` is written.
std::string PartialName(const std::string& path);

}  // namespace tacho::ctl
