// The events of other tools that are on their way to the store. A client that got no answer sends
// its request again, without a number that would tell a repeat from a new event. So events that are
// equal in everything, the nanosecond included, are one event: of those that are under way at the
// same time one goes to the store and all hear how it ended, and what has arrived is looked up
// there by its time. Neither needs anything on disk beside the event, and a repeat is known after
// a crash too.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "storage/model/event.h"

namespace tacho::server::interop {

// Thread-safe. As large as the store's queue and the requests that are being worked on.
class EventsInFlight {
 public:
  using Done = std::function<void(const absl::Status&)>;

  // Equal for equal events, and for no others.
  static std::string IdentityOf(const storage::Event& event);

  // `done` is called when the event has ended. True: the caller is the first, who looks in the
  // store, appends the event if it is not there, and calls End() in any case. Looking before this
  // call would miss an event that ends in between.
  bool Begin(const std::string& identity, Done done) ABSL_LOCKS_EXCLUDED(mutex_);
  // The event is durable, or refused.
  void End(const std::string& identity, const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, std::vector<Done>> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::server::interop
