// ListScalars and ReadScalars: every stored series is a scalar to TensorBoard.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "interop/tensorboard_data_provider.pb.h"
#include "server/tensorboard/experiment.h"

namespace tacho::server::tb {

inline constexpr absl::string_view kScalarsPlugin = "scalars";

// Runs without a tag that the filter lets through are left out, and so is everything for another
// plugin than kScalarsPlugin. Statuses as FindExperiment(), CheckPlugin(), CheckDownsample(),
// FindScalarTags() and ReadScalarPoints(), and
//   RESOURCE_EXHAUSTED  more than kMaxPointsOfAnswer points, or kMaxTagsOfAnswer tags.
absl::Status ListScalars(const World& world, const ::tensorboard::data::ListScalarsRequest& request,
                         ::tensorboard::data::ListScalarsResponse* response);

// Values become floats: those that are finite and beyond the range of one become its largest.
absl::Status ReadScalars(const World& world, const ::tensorboard::data::ReadScalarsRequest& request,
                         ::tensorboard::data::ReadScalarsResponse* response);

// Tags of one answer: some 50 MB of them.
inline constexpr int64_t kMaxTagsOfAnswer = 200'000;

}  // namespace tacho::server::tb
