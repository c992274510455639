// Options of a receiver for tests: all series from the beginning, four samples a request, and
// hardly a pause anywhere.
#pragma once

#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "prometheus/registry.h"
#include "server/forward/receiver.h"
#include "storage/store.h"

namespace tacho::server::forward {

// Neither is owned. The address, the protocol and the timeout are for the test to set.
inline ReceiverOptions EagerReceiver(const std::string& name, storage::Store* store,
                                     prometheus::Registry* registry) {
  ReceiverOptions options;
  options.config.set_name(name);
  options.config.set_connections(1);
  options.config.set_max_samples(4);
  options.config.set_max_backoff(absl::ToInt64Nanoseconds(absl::Milliseconds(20)));
  options.config.set_start_at("oldest");
  options.config.set_series(true);
  options.key = "forward[0]";
  options.store = store;
  options.registry = registry;
  options.now = absl::Now;
  options.version = "1.2.3";
  options.poll = absl::Milliseconds(5);
  options.first_pause = absl::Milliseconds(1);
  options.ends_every = absl::InfiniteDuration();
  return options;
}

}  // namespace tacho::server::forward
