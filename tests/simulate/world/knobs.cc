#include "tests/simulate/world/knobs.h"

#include <initializer_list>

#include "tests/simulate/schedule/schedule.h"

namespace tacho::simulate {
namespace {

template <typename T>
T OneOf(std::initializer_list<T> choices) {
  return choices.begin()[ScheduleRandom() % choices.size()];
}

}  // namespace

Knobs DrawKnobs(bool days) {
  using absl::Milliseconds;
  using absl::Minutes;
  using absl::Seconds;
  Knobs knobs;
  knobs.agents = OneOf<int>({2, 3, 4});
  knobs.check_every_s = OneOf<int64_t>({3, 20});
  knobs.seal_age = OneOf<absl::Duration>({Seconds(5), Seconds(30), Minutes(2), Minutes(10)});
  knobs.seal_rows = OneOf<uint32_t>({4, 16, 64, 1024});
  knobs.merge_quiet = OneOf<absl::Duration>({Seconds(10), Minutes(1), Minutes(60)});
  knobs.job_idle = OneOf<absl::Duration>({Seconds(30), Minutes(2), Minutes(60)});
  knobs.commit_spacing =
      OneOf<absl::Duration>({absl::ZeroDuration(), Milliseconds(10), Milliseconds(300)});
  knobs.queue_bytes = OneOf<uint64_t>({2 << 10, 64 << 10, 64 << 20});
  knobs.open_bytes = OneOf<uint64_t>({64 << 10, 256 << 10, 80 << 20});
  knobs.open_raw_bytes = knobs.open_bytes / 4;
  knobs.journal_bytes = OneOf<uint64_t>({32 << 10, 256 << 10, 256 << 20});
  knobs.column_cache_bytes = OneOf<uint64_t>({0, 4 << 10, 64 << 20});
  knobs.series_at_open = OneOf<uint64_t>({2, 8, 200'000});
  knobs.ballast_bytes = OneOf<uint64_t>({0, 64 << 10, 1 << 20});
  knobs.series_per_job = OneOf<uint32_t>({0, 0, 0, 8});
  knobs.latency_max = OneOf<absl::Duration>({Milliseconds(1), Milliseconds(50), Seconds(2)});
  knobs.bytes_per_second = OneOf<uint64_t>({0, 0, 20'000});
  knobs.backlog_rows_per_second = OneOf<uint32_t>({0, 20, 1000});
  knobs.short_backlog = OneOf<uint64_t>({2, 8, 64});
  knobs.spool_bytes = OneOf<uint64_t>({1 << 30, 1 << 30, 4 << 10, 16 << 10});
  knobs.sync_interval = OneOf<absl::Duration>({Milliseconds(100), Seconds(1), Seconds(3)});
  if (!days) return knobs;
  knobs.retention = absl::Hours(24 * OneOf<int>({1, 2, 4}));
  // Here memory does not change, and most of what happens in quiet hours would be to look at it.
  knobs.memory_round = Minutes(1);
  return knobs;
}

}  // namespace tacho::simulate
