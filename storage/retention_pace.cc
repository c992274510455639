#include "storage/retention_pace.h"

#include <algorithm>
#include <limits>

namespace tacho::storage {

RetentionPace::RetentionPace(uint32_t days_per_hour, absl::Time started)
    : days_per_hour_(days_per_hour), paid_until_(started) {}

size_t RetentionPace::Allowed(absl::Time now) const {
  if (days_per_hour_ == 0) return std::numeric_limits<size_t>::max();
  const absl::Duration unpaid = std::clamp(now - paid_until_, absl::ZeroDuration(), absl::Hours(1));
  return static_cast<size_t>(absl::ToInt64Nanoseconds(unpaid * days_per_hour_) /
                             absl::ToInt64Nanoseconds(absl::Hours(1)));
}

int64_t RetentionPace::FirstKept(const std::vector<int64_t>& days, int64_t wanted,
                                 absl::Time now) const {
  const size_t allowed = Allowed(now);
  return days.size() <= allowed ? wanted : std::min(days[allowed], wanted);
}

void RetentionPace::Dropped(size_t days, absl::Time now) {
  if (days_per_hour_ == 0) return;
  paid_until_ = std::max(paid_until_, now - absl::Hours(1)) +
                absl::Hours(1) * static_cast<int64_t>(days) / days_per_hour_;
}

}  // namespace tacho::storage
