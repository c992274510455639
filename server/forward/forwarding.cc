#include "server/forward/forwarding.h"

#include <set>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "server/metrics/metric_families.h"

namespace tacho::server::forward {

absl::StatusOr<std::unique_ptr<Forwarding>> Forwarding::Create(const ForwardingOptions& options) {
  auto forwarding = std::make_unique<Forwarding>();
  std::set<std::string> names;
  for (int i = 0; i < options.config.forward_size(); ++i) {
    ReceiverOptions one;
    one.store = options.store;
    one.registry = options.registry;
    one.now = options.now;
    one.shows = options.shows;
    one.page = options.page;
    one.staleness = absl::Nanoseconds(options.config.metrics().staleness());
    one.version = options.version;
    one.log = options.log;
    one.config = options.config.forward(i);
    one.key = absl::StrCat("forward[", i, "]");
    if (!names.insert(one.config.name()).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          one.key, ".name: another receiver is called \"", one.config.name(), "\" too"));
    }
    TACHO_ASSIGN_OR_RETURN(auto receiver, Receiver::Create(std::move(one)));
    forwarding->receivers_.push_back(std::move(receiver));
  }
  return forwarding;
}

void Forwarding::Start() {
  for (const auto& receiver : receivers_) receiver->Start();
}

void Forwarding::Stop() {
  std::vector<std::thread> threads;
  for (const auto& receiver : receivers_) {
    threads.emplace_back([one = receiver.get()] { one->Stop(); });
  }
  for (std::thread& thread : threads) thread.join();
}

std::vector<prometheus::MetricFamily> Forwarding::Families() const {
  if (receivers_.empty()) return {};
  prometheus::MetricFamily lag = metrics::EmptyFamily("tacho_forward_lag_seconds");
  for (const auto& receiver : receivers_) {
    metrics::AddLine({{"receiver", receiver->name()}}, absl::ToDoubleSeconds(receiver->Lag()),
                     &lag);
  }
  return {lag};
}

}  // namespace tacho::server::forward
