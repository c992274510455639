#include "storage/model/job.h"

#include <algorithm>

namespace tacho::storage {

void Extent::Include(int64_t time_ns) {
  first_time_ns = std::min(first_time_ns, time_ns);
  last_time_ns = std::max(last_time_ns, time_ns);
}

void Extent::IncludeStep(int64_t step) {
  if (step == kNoStep) return;
  if (!first_step || step < *first_step) first_step = step;
  if (!last_step || step > *last_step) last_step = step;
}

void Extent::Include(const Extent& other) {
  first_time_ns = std::min(first_time_ns, other.first_time_ns);
  last_time_ns = std::max(last_time_ns, other.last_time_ns);
  if (other.first_step) IncludeStep(*other.first_step);
  if (other.last_step) IncludeStep(*other.last_step);
}

}  // namespace tacho::storage
