// Who was not let in: counted, and said in the log, of which an attacker must not fill a disk.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "prometheus/counter.h"
#include "prometheus/registry.h"
#include "proto/base/log.h"

namespace tacho::server::security {

// Thread-safe.
class RefusalLog {
 public:
  // `registry` is not owned and must outlive this; null: nothing is counted.
  RefusalLog(log::Log log, prometheus::Registry* registry);

  // `why` has no secret in it, and `peer` is an address.
  void Refused(const absl::Status& why, absl::string_view peer);

 private:
  const log::Log log_;
  prometheus::Counter* unauthenticated_ = nullptr;
  prometheus::Counter* not_allowed_ = nullptr;
};

}  // namespace tacho::server::security
