// ListTensors and ReadTensors: the texts of a run. Histograms are not stored as such.
//
//   tag             point
//   attributes      one at step 0 and the run's first time: a table of the attempt's attributes
//   events/KIND     one for each event of the attempt: its message and a table of its fields; at
//                   step 0 if the event has no step
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "interop/tensorboard_data_provider.pb.h"
#include "server/tensorboard/experiment.h"

namespace tacho::server::tb {

inline constexpr absl::string_view kTextPlugin = "text";
// Texts of one answer: each is at most some KiB.
inline constexpr int64_t kMaxTextsOfAnswer = 10'000;

// Texts are Markdown, the newest ones where there are more than num_points. Statuses as of
// ListScalars() and ReadScalars() in scalars.h; every other plugin has nothing.
absl::Status ListTensors(const World& world, const ::tensorboard::data::ListTensorsRequest& request,
                         ::tensorboard::data::ListTensorsResponse* response);
absl::Status ReadTensors(const World& world, const ::tensorboard::data::ReadTensorsRequest& request,
                         ::tensorboard::data::ReadTensorsResponse* response);

// Whether any of the runs has a text. Statuses as storage has it.
absl::StatusOr<bool> HasText(const World& world, const std::vector<Run>& runs);

}  // namespace tacho::server::tb
