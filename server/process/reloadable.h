// A part of the collector whose settings can change while it runs.
#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "tacho/config/v1/collector.pb.h"

namespace tacho::server::process {

// A reload is all or nothing: every part prepares, and only if all could, all apply.
class Reloadable {
 public:
  virtual ~Reloadable() = default;

  // Reads and checks everything that may fail (files, expressions) and changes nothing yet. The
  // function that it returns applies the change; it cannot fail, and must be called at most once,
  // and soon. An error names the key that is wrong. One call at a time.
  virtual absl::StatusOr<std::function<void()>> Prepare(const config::v1::Collector& config) = 0;
};

}  // namespace tacho::server::process
