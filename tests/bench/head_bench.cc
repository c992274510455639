// What the head costs, apart from everything else: resident bytes a series by part, and times.
//
// Works on storage's classes directly; the journal and RocksDB have no part in it.
#include <malloc.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "storage/codec/frame.h"
#include "storage/head/head.h"
#include "storage/journal/rows_entry.h"
#include "tests/bench/bench_flags.h"
#include "tests/bench/fleet_generator.h"

namespace tacho::bench {
namespace {

using storage::Head;

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double ResidentBytes() {
  std::ifstream status("/proc/self/statm");
  double pages = 0;
  status >> pages >> pages;
  return pages * 4096;
}

// The layouts of a fleet and the rows of a few of its hosts, which all hosts take turns in sending.
class Fleet {
 public:
  Fleet(size_t hosts, size_t rows) {
    for (uint32_t i = 0; i < kModels; ++i) {
      FleetHost host({.start_unix_ns = 1'700'000'000'000'000'000}, i * 37);
      auto& model = models_.emplace_back();
      for (size_t row = 0; row < rows; ++row) model.push_back(host.NextRow());
    }
    for (size_t host = 0; host < hosts; ++host) {
      sources_.emplace_back();
      auto layout = std::make_shared<storage::Layout>();
      layout->id = host + 1;
      layout->has_steps = true;
      for (size_t i = 0; i < kSeries; ++i) {
        series_.push_back({.id = host * kSeries + i + 1,
                           .job_id = 1,
                           .metric_id = static_cast<storage::MetricId>(i + 1),
                           .source = &sources_.back()});
        layout->series.push_back(&series_.back());
      }
      layouts_.push_back(std::move(layout));
    }
  }

  const std::vector<storage::LayoutPtr>& layouts() const { return layouts_; }
  size_t series() const { return layouts_.size() * kSeries; }

  std::string Entry(size_t host, size_t row) const {
    const FleetRow& from = models_[host % kModels][row];
    return storage::EncodeRowsEntry(*layouts_[host],
                                    {{&from.time_unix_ns, 1}, {&from.step, 1}, from.values});
  }

 private:
  static constexpr uint32_t kModels = 64;
  std::vector<std::vector<FleetRow>> models_;
  std::deque<storage::SeriesSource> sources_;
  std::deque<storage::Series> series_;
  std::vector<storage::LayoutPtr> layouts_;
};

// Appends one row of every host; returns the seconds that Head::Append() took.
double AppendRow(const Fleet& fleet, size_t row, uint64_t* position, Head* head) {
  constexpr size_t kAtOnce = 64;  // Entries take memory too.
  double seconds = 0;
  for (size_t first = 0; first < fleet.layouts().size(); first += kAtOnce) {
    const size_t last = std::min(first + kAtOnce, fleet.layouts().size());
    std::vector<std::string> entries;
    for (size_t host = first; host < last; ++host) entries.push_back(fleet.Entry(host, row));
    const double begin = CpuSeconds();
    for (size_t host = first; host < last; ++host) {
      head->Append(fleet.layouts()[host], *storage::DecodeRowsEntry(entries[host - first]),
                   ++*position, absl::UnixEpoch());
    }
    seconds += CpuSeconds() - begin;
  }
  return seconds;
}

template <typename Work>
double Timed(const Work& work) {
  const double begin = CpuSeconds();
  work();
  return CpuSeconds() - begin;
}

void Say(const char* what, double value, const char* unit) {
  std::printf("%-44s %12.3f %s\n", what, value, unit);
}

void Run(size_t hosts, size_t rows, size_t raw_rows, bool trim) {
  const Fleet fleet(hosts, rows);
  const auto series = static_cast<double>(fleet.series());
  auto head = std::make_unique<Head>();
  malloc_trim(0);
  const double before = ResidentBytes();
  uint64_t position = 0;
  double append = 0;
  double compress = 0;
  for (size_t row = 0; row < rows; ++row) {
    append += AppendRow(fleet, row, &position, head.get());
    if (row == 0) Say("resident with one row", (ResidentBytes() - before) / series, "B/series");
    if (raw_rows != 0 && (row + 1) % raw_rows == 0) {
      compress += Timed([&] { head->Compress(0, 0); });
    }
  }
  if (trim) malloc_trim(0);
  const double values = series * static_cast<double>(rows);
  Say("resident with all rows", (ResidentBytes() - before) / series, "B/series");
  Say("of that, rows as they came", static_cast<double>(head->total().raw_bytes()) / series,
      "B/series");
  Say("of that, compressed rows",
      static_cast<double>(head->total().bytes() - head->total().raw_bytes()) / series, "B/series");
  Say("append", append / values * 1e9, "ns/value");
  Say("compress", compress / values * 1e9, "ns/value appended");

  double sum = 0;
  Say("visit the latest rows", 1e3 * Timed([&] {
                                 head->VisitLatestRows([&](const storage::LatestRow& row) {
                                   for (const double value : row.values) sum += value;
                                 });
                               }),
      "ms");
  Say("sealed up to", 1e3 * Timed([&] { sum += static_cast<double>(head->SealedUpTo()); }), "ms");
  Say("take for sealing, nothing due",
      1e3 * Timed([&] { head->TakeForSealing({.min_rows = 1 << 20}, 1 << 20); }), "ms");
  Say("capture one series of every host",
      1e3 * Timed([&] {
        for (const auto& layout : fleet.layouts()) {
          sum += static_cast<double>(head->Capture(*layout->series[7]).size());
        }
      }),
      "ms");
  const double resident = ResidentBytes();
  double decode = 0;
  for (;;) {
    const auto some = head->TakeForSealing({.min_rows = 1}, 1 << 20);
    if (some.empty()) break;
    decode += Timed([&] {
      for (const auto& one : some) {
        sum += static_cast<double>(one.taken.Decode(*one.frame->layout()).size());
      }
    });
    for (const auto& one : some) one.frame->FinishSealing();
  }
  Say("decode for sealing", decode / values * 1e9, "ns/value");
  Say("resident less once all is sealed", (resident - ResidentBytes()) / series, "B/series");
  Say("resident then", (ResidentBytes() - before) / series, "B/series");
  if (sum == 0.5) std::puts("");  // Keeps what was summed.
}

}  // namespace
}  // namespace tacho::bench

int main(int argc, char** argv) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);  // As the collector does.
  std::map<std::string, std::string> flags = {
      {"hosts", "11364"},  // Each has 88 series.
      {"rows", "12"},      // For each host.
      {"raw-rows", "4"},   // Compress when so many rows have come; 0: never.
      {"trim", "0"},       // 1: give free memory back to the system before measuring.
  };
  tacho::bench::ParseFlags(argc, argv, &flags);
  const auto number = [&](const char* name) {
    return static_cast<size_t>(tacho::bench::NumberFlag(flags, name));
  };
  tacho::bench::Run(number("hosts"), number("rows"), number("raw-rows"), number("trim") != 0);
}
