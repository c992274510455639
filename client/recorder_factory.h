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
  // A recorder that records nothing; prints the reason on standard error.
  static Recorder Failed(const char* why) noexcept;
};

// The clock of `options`, or the system's.
int64_t NowUnixNs(const RecorderOptions& options);

// A variable of the environment of `options`; empty if it is not set.
std::string EnvironmentOf(const RecorderOptions& options, const char* name);

// The identity from the options and the environment. Sets `trouble` if nothing can be recorded
// because the job has no valid name.
AttemptIdentity FindIdentity(const RecorderOptions& options);

}  // namespace tacho::client
