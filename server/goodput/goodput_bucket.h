// The kinds of wall time. docs/goodput.md defines them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace tacho::server::goodput {

// In the order of v1::GoodputBucket, which begins with 1.
enum class GoodputBucket : uint8_t {
  kProductiveStep,
  kInitializing,
  kCompiling,
  kRestoring,
  kDataWait,
  kCheckpoint,
  kEvaluation,
  kWasted,
  kStalled,
  kDown,
  kOther,
  kWaitingForOthers,
  kCount,
};
inline constexpr size_t kGoodputBuckets = static_cast<size_t>(GoodputBucket::kCount);
absl::string_view GoodputBucketName(GoodputBucket bucket);  // "productive_step", …

// Time in each bucket, in ns.
using BucketAmounts = std::array<int64_t, kGoodputBuckets>;

}  // namespace tacho::server::goodput
