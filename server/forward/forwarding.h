// All receivers of `forward`.
#pragma once

#include <prometheus/metric_family.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/forward/receiver.h"
#include "tacho/config/v1/collector.pb.h"

namespace tacho::server::forward {

struct ForwardingOptions {
  config::v1::Collector config;     // Durations in ns.
  storage::Store* store = nullptr;  // Not owned, as the next; both must outlive it.
  prometheus::Registry* registry = nullptr;
  std::function<absl::Time()> now;
  // As ReceiverOptions has them; called from Start() to Stop().
  std::function<bool(absl::string_view job, absl::string_view host)> shows;
  std::function<std::string()> page;
  std::string version;  // The collector's.
  log::Log log;
};

// Start(), Stop() and destruction are for one thread; Families() is for any.
class Forwarding {
 public:
  // As Receiver::Create().
  //   INVALID_ARGUMENT  also: two receivers of one name.
  static absl::StatusOr<std::unique_ptr<Forwarding>> Create(const ForwardingOptions& options);
  void Start();
  // Stops them together, so that it takes as long as the slowest.
  void Stop();

  std::vector<prometheus::MetricFamily> Families() const;

 private:
  std::vector<std::unique_ptr<Receiver>> receivers_;
};

}  // namespace tacho::server::forward
