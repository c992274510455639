// Series of a request as messages from one member of the cluster to another, and back.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "server/interop/formats/foreign_write.h"
#include "tacho/v1/member_writes.pb.h"

namespace tacho::server::interop {

// About as much is in one message: far less than a member takes at once (ingest.max_message_bytes).
inline constexpr size_t kPassedBytes = size_t{512} << 10;

// Whether it describes metrics apart from their series. Every member needs such descriptions.
bool TellsMetrics(const ForeignWrite& write);

// `series` are indices into write.series, and all metrics that are told apart come with them. A
// series with many samples is in several messages. Without a sender.
std::vector<v1::StoreSeriesRequest> PassedSeries(const ForeignWrite& write,
                                                 std::span<const uint32_t> series);

// What the other member has asked to be stored. Nothing in `request` is trusted. The result points
// into it.
//   INVALID_ARGUMENT    it contradicts itself; the text names the field.
//   RESOURCE_EXHAUSTED  (TOO_LARGE) as ForeignWrite::CheckSize().
absl::StatusOr<ForeignWrite> ReadPassedSeries(const v1::StoreSeriesRequest& request);

}  // namespace tacho::server::interop
