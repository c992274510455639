// Events of a request as messages from one member of the cluster to another, and back.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "server/interop/formats/foreign_events.h"
#include "tacho/v1/member_writes.pb.h"

namespace tacho::server::interop {

// `events` are indices into write.events. Without a sender.
std::vector<v1::StoreEventsRequest> PassedEvents(const ForeignEvents& write,
                                                 std::span<const uint32_t> events);

// What the other member has asked to be stored. Nothing in `request` is trusted.
//   INVALID_ARGUMENT    it contradicts itself; the text names the field.
//   RESOURCE_EXHAUSTED  (TOO_LARGE) as ForeignEvents::CheckSize().
absl::StatusOr<ForeignEvents> ReadPassedEvents(const v1::StoreEventsRequest& request);

}  // namespace tacho::server::interop
