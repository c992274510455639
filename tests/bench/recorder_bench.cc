// What recording costs a trainer: ns for each value, the commit of its row included.
//
//   recorder_bench [--json FILE] [Google Benchmark's own flags]
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "client/recorder.h"

namespace tacho::client {
namespace {

// A ring in memory, as /run/tacho is; removed at the end.
class BenchRing {
 public:
  explicit BenchRing(int64_t metric_count) {
    std::string pattern = "/dev/shm/tacho_bench_XXXXXX";
    if (mkdtemp(pattern.data()) != nullptr) directory_ = pattern;
    RecorderOptions options;
    options.directory = directory_;
    options.job = "bench";
    recorder = Recorder::Open(options);
    for (int64_t i = 0; i < metric_count; ++i) {
      metrics.push_back(recorder.Gauge("metric_" + std::to_string(i), "1", "A metric."));
    }
  }
  BenchRing(const BenchRing&) = delete;
  BenchRing& operator=(const BenchRing&) = delete;
  ~BenchRing() { std::filesystem::remove_all(directory_); }

  Recorder recorder;
  std::vector<Metric> metrics;

 private:
  std::string directory_;
};

// The argument is how many metrics a row has.
void BM_RecordRow(benchmark::State& state) {
  BenchRing ring(state.range(0));
  if (!ring.recorder.recording()) return state.SkipWithError("no ring");
  int64_t step = 0;
  double value = 0;
  for (auto _ : state) {
    for (const Metric metric : ring.metrics) ring.recorder.Set(metric, value += 0.5);
    ring.recorder.CommitStep(step++);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_RecordRow)->Arg(1)->Arg(10)->Arg(100)->Arg(1000);

// Prints as always, and keeps the figures.
class FigureReporter : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      const auto rate = run.counters.find("items_per_second");
      if (run.error_occurred || rate == run.counters.end()) continue;
      figures_ += "{\"id\": \"client.record_value." + run.run_name.args +
                  "_metrics\", \"unit\": \"ns\", \"ours\": " + std::to_string(1e9 / rate->second) +
                  ", \"peers\": {}}\n";
    }
  }

  const std::string& figures() const { return figures_; }

 private:
  std::string figures_;
};

// Takes "--json FILE" out of the arguments.
std::string TakeJsonFlag(std::vector<char*>* arguments) {
  for (size_t i = 1; i + 1 < arguments->size(); ++i) {
    if (std::string((*arguments)[i]) != "--json") continue;
    std::string file = (*arguments)[i + 1];
    arguments->erase(arguments->begin() + static_cast<ptrdiff_t>(i),
                     arguments->begin() + static_cast<ptrdiff_t>(i) + 2);
    return file;
  }
  return "";
}

int Main(std::vector<char*> arguments) {
  const std::string json = TakeJsonFlag(&arguments);
  int argc = static_cast<int>(arguments.size());
  benchmark::Initialize(&argc, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(argc, arguments.data())) return 2;
  FigureReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  if (json.empty()) return 0;
  std::ofstream out(json);
  out << reporter.figures();
  return out.flush() ? 0 : 1;
}

}  // namespace
}  // namespace tacho::client

int main(int argc, char** argv) {
  return tacho::client::Main(std::vector<char*>(argv, argv + argc));
}
