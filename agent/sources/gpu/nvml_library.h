// NVIDIA's management library, found at run time.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/sources/gpu/nvml_abi.h"

namespace tacho::agent {

// The loaded library, initialised. Its functions may be called by any thread; each of them may
// block for as long as a broken driver likes. Shut down and unloaded when the last owner lets go of
// it, so a caller that may hang in it must own it.
class NvmlLibrary {
 public:
  // `path` as dlopen() takes it.
  //   NOT_FOUND    there is no such library: no NVIDIA driver is installed here.
  //   UNAVAILABLE  it is there and does not start (no driver loaded, versions differ); the text
  //   says
  //                why. Try again later.
  //   FAILED_PRECONDITION  it is another library, or lacks what nothing works without.
  static absl::StatusOr<std::shared_ptr<const NvmlLibrary>> Load(const std::string& path);
  NvmlLibrary(const NvmlLibrary&) = delete;
  NvmlLibrary& operator=(const NvmlLibrary&) = delete;
  ~NvmlLibrary();

  // Some are null; those that enumerate devices are not.
  const nvml::Functions& calls() const { return calls_; }

  // The meaning of a result, with its number.
  std::string Describe(int result) const;

 private:
  explicit NvmlLibrary(void* handle);

  void* const handle_;
  nvml::Functions calls_;
  bool started_ = false;
};

}  // namespace tacho::agent
