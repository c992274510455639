// Makes recorders over a backend. Internal to the client library.
#pragma once

#include <memory>
#include <string>

#include "client/environment_identity.h"
#include "client/recorder.h"
#include "client/ring/recorder_backend.h"

namespace tacho::client {

struct RecorderFactory {
  // May throw std::bad_alloc.
  static Recorder Make(std::unique_ptr<RecorderBackend> backend, const RecorderOptions& options);
  // One that records nothing, and says on standard error why.
  static Recorder Failed(const char* why) noexcept;
};

// The clock of `options`, or the system's.
int64_t NowUnixNs(const RecorderOptions& options);

// A variable of the environment of `options`; empty if there is none.
std::string EnvironmentOf(const RecorderOptions& options, const char* name);

// By the options and the environment. With `trouble` if nothing may be recorded, as the job has no
// or no proper name.
AttemptIdentity FindIdentity(const RecorderOptions& options);

}  // namespace tacho::client
