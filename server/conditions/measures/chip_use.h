// What the chips of a job did over a span of time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "server/conditions/window/signal.h"
#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

// The mean of a track's finite values with from_ns < time <= to_ns; nullopt if there is none.
std::optional<double> MeanOver(const Track& track, int64_t from_ns, int64_t to_ns);

struct ChipMean {
  const ChipWindow* chip = nullptr;
  double value = 0;
};

// Of a signal, over the chips that have values then; shares that came as percent are not expected.
std::vector<ChipMean> ChipMeans(const JobWindow& window, Signal signal, int64_t from_ns,
                                int64_t to_ns);

// The mean of them; nullopt if there are none.
std::optional<double> MeanOf(const std::vector<ChipMean>& chips);

}  // namespace tacho::server::conditions
