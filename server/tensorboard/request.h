// What the requests of all data classes have in common: checks, and what they need of a collector.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "interop/tensorboard_data_provider.pb.h"
#include "server/query/read/query_control.h"
#include "server/security/rights.h"
#include "storage/store.h"

namespace tacho::server::tb {

// What a request is answered from. All outlive the call.
struct World {
  const storage::Store& store;
  const security::Rights& rights;
  const query::QueryControl& control;
  absl::Time now;
  uint64_t max_series = 0;  // query.max_series
};

// Points of one answer, however many a series may have: some 100 MB.
inline constexpr int64_t kMaxPointsOfAnswer = 5'000'000;

//   INVALID_ARGUMENT  the plugin's name is empty.
absl::Status CheckPlugin(const ::tensorboard::data::PluginFilter& filter);
//   INVALID_ARGUMENT  a number below 0.
absl::Status CheckDownsample(bool present, const ::tensorboard::data::Downsample& downsample);

// Seconds since the Unix epoch, as TensorBoard has times.
double WallTime(int64_t time_ns);

}  // namespace tacho::server::tb
