// What recording costs a trainer, beside a gauge of prometheus-cpp, which keeps one value in memory
// and no history.
//
//   recorder_bench [--json FILE] [Google Benchmark's own flags]
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "client/recorder.h"
#include "prometheus/gauge.h"
#include "prometheus/registry.h"

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

// One value, without its row.
void BM_SetValue(benchmark::State& state) {
  BenchRing ring(24);
  if (!ring.recorder.recording()) return state.SkipWithError("no ring");
  double value = 0;
  size_t i = 0;
  for (auto _ : state) {
    ring.recorder.Set(ring.metrics[i], value += 0.5);
    i = i == 23 ? 0 : i + 1;
  }
}
BENCHMARK(BM_SetValue);

void BM_PrometheusGaugeSet(benchmark::State& state) {
  prometheus::Registry registry;
  auto& family = prometheus::BuildGauge().Name("metric").Register(registry);
  std::vector<prometheus::Gauge*> gauges;
  for (int i = 0; i < 24; ++i) gauges.push_back(&family.Add({{"metric", std::to_string(i)}}));
  double value = 0;
  size_t i = 0;
  for (auto _ : state) {
    gauges[i]->Set(value += 0.5);
    i = i == 23 ? 0 : i + 1;
  }
}
BENCHMARK(BM_PrometheusGaugeSet);

// A row that has its values already; the argument is how many.
void BM_CloseRow(benchmark::State& state) {
  BenchRing ring(state.range(0));
  if (!ring.recorder.recording()) return state.SkipWithError("no ring");
  int64_t step = 0;
  for (auto _ : state) ring.recorder.CommitStep(step++);
}
BENCHMARK(BM_CloseRow)->Arg(24);

// A step of three phases with 24 metrics of its own, which are set.
void BM_StepWithThreePhases(benchmark::State& state) {
  BenchRing ring(24);
  if (!ring.recorder.recording()) return state.SkipWithError("no ring");
  int64_t n = 0;
  double value = 0;
  for (auto _ : state) {
    auto step = ring.recorder.Step(n++);
    step.Phase("data");
    step.Phase("compute");
    step.Phase("comm");
    for (const Metric metric : ring.metrics) ring.recorder.Set(metric, value += 0.5);
  }
}
BENCHMARK(BM_StepWithThreePhases);

// One observation of a histogram with the default buckets, anywhere in them.
void BM_Observe(benchmark::State& state) {
  BenchRing ring(1);
  if (!ring.recorder.recording()) return state.SkipWithError("no ring");
  const HistogramMetric histogram = ring.recorder.Histogram("norms", "1", "Norms.");
  double value = 1e-4;
  for (auto _ : state) {
    ring.recorder.Observe(histogram, value);
    value = value > 800 ? 1e-4 : value * 1.1;
  }
}
BENCHMARK(BM_Observe);

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
      if (run.error_occurred || run.run_type == Run::RT_Aggregate) continue;
      const auto rate = run.counters.find("items_per_second");
      const double ns = rate == run.counters.end() ? run.GetAdjustedCPUTime() : 1e9 / rate->second;
      ns_[run.run_name.function_name][run.run_name.args] = ns;
    }
  }

  std::string figures() const {
    std::string figures;
    for (const auto& [args, ns] : Of("BM_RecordRow")) {
      figures += Figure("client.record_value." + args + "_metrics", ns, "");
    }
    for (const auto& [args, ns] : Of("BM_SetValue")) {
      std::string peers;
      for (const auto& [unused, peer] : Of("BM_PrometheusGaugeSet")) {
        peers = "\"prometheus_cpp\": " + std::to_string(peer);
      }
      figures += Figure("client.set_value", ns, peers);
    }
    for (const auto& [args, ns] : Of("BM_CloseRow")) {
      figures += Figure("client.close_row." + args + "_metrics", ns, "");
    }
    for (const auto& [args, ns] : Of("BM_StepWithThreePhases")) {
      figures += Figure("client.step_with_three_phases", ns, "");
    }
    for (const auto& [args, ns] : Of("BM_Observe")) figures += Figure("client.observe", ns, "");
    return figures;
  }

 private:
  using ByArgs = std::map<std::string, double>;

  ByArgs Of(const std::string& function) const {
    const auto found = ns_.find(function);
    return found == ns_.end() ? ByArgs() : found->second;
  }
  static std::string Figure(const std::string& id, double ns, const std::string& peers) {
    return "{\"id\": \"" + id + "\", \"unit\": \"ns\", \"ours\": " + std::to_string(ns) +
           ", \"peers\": {" + peers + "}}\n";
  }

  std::map<std::string, ByArgs> ns_;  // By function.
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
