// A trainer that does nothing but record: one ring, rows of gauges at a pace, until it is killed.
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/recorder.h"
#include "tests/bench/bench_flags.h"

namespace {

int Write(const std::map<std::string, std::string>& flags) {
  tacho::client::RecorderOptions options;
  options.directory = flags.at("directory");
  options.job = flags.at("job");
  options.task = static_cast<uint32_t>(tacho::bench::NumberFlag(flags, "task"));
  auto recorder = tacho::client::Recorder::Open(options);
  if (!recorder.recording()) return 1;
  std::vector<tacho::client::Metric> metrics;
  for (int64_t i = 0; i < tacho::bench::NumberFlag(flags, "series"); ++i) {
    metrics.push_back(recorder.Gauge(absl::StrCat("value_", i), "1", "A level."));
  }
  const absl::Duration interval =
      absl::Milliseconds(tacho::bench::NumberFlag(flags, "interval-ms"));
  absl::Time due = absl::Now();
  for (int64_t step = 0;; ++step) {
    for (size_t i = 0; i < metrics.size(); ++i) {
      recorder.Set(metrics[i], std::sin(static_cast<double>(step) + static_cast<double>(i)));
    }
    recorder.CommitStep(step);
    due += interval;
    absl::SleepFor(due - absl::Now());
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, std::string> flags = {{"directory", ""},
                                              {"job", "bench"},
                                              {"task", "0"},
                                              {"series", "10"},
                                              {"interval-ms", "1000"}};
  tacho::bench::ParseFlags(argc, argv, &flags);
  return Write(flags);
}
