// What judging jobs costs the collector: a fleet of jobs, one row of each task a second, in a real
// store in memory; the processor time of the engine's own work, by simulated second.
//
//   conditions_bench [JOBS] [TASKS] [SECONDS] [INTERVAL_SECONDS]
//
// Time is simulated, so that what it prints does not depend on what else the machine does.
#include <prometheus/registry.h>
#include <rocksdb/env.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "proto/config/yaml_config.h"
#include "server/conditions/condition_engine.h"
#include "storage/store.h"

namespace {

using namespace tacho;  // NOLINT(google-build-using-namespace)

constexpr const char* kTaskMetrics[] = {"loss",      "grad_norm",         "learning_rate",
                                        "tokens",    "step_time_seconds", "data_wait_seconds",
                                        "accuracy",  "compute_seconds",   "comm_wait_seconds",
                                        "something", "something_else",    "yet_another"};
constexpr size_t kMetrics = std::size(kTaskMetrics);

double ThreadSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

int Argument(int argc, char** argv, int index, int otherwise) {
  return argc > index ? std::atoi(argv[index]) : otherwise;
}

storage::LayoutPtr Register(storage::Store* store, const std::string& job, uint32_t task) {
  storage::LayoutDefinition definition;
  definition.source = {job, task, 0, "host-" + job + "-" + std::to_string(task / 8)};
  definition.has_steps = true;
  for (const char* name : kTaskMetrics) {
    definition.series.push_back({{name, storage::MetricType::kGauge, "1", ""}, {}});
  }
  return store->RegisterLayout(definition)->layout;
}

}  // namespace

int main(int argc, char** argv) {
  const int jobs = Argument(argc, argv, 1, 100);
  const int tasks = Argument(argc, argv, 2, 64);
  const int seconds = Argument(argc, argv, 3, 300);
  const int interval = Argument(argc, argv, 4, 5);
  absl::Time now = absl::FromUnixSeconds(1'800'000'000);
  const std::unique_ptr<rocksdb::Env> env(rocksdb::NewMemEnv(rocksdb::Env::Default()));
  storage::StoreOptions store_options;
  store_options.path = "/store";
  store_options.env = env.get();
  store_options.now = [&] { return now; };
  store_options.commit_spacing = absl::ZeroDuration();
  auto store = *storage::Store::Open(store_options);

  config::v1::Collector config;
  if (!config::ParseYaml("", "none", &config).ok()) return 1;
  config.mutable_conditions()->set_interval(interval * int64_t{1'000'000'000});
  prometheus::Registry registry;
  server::conditions::ConditionEngineOptions options;
  options.store = store.get();
  options.settings = *server::conditions::ConditionSettings::Create(config.conditions());
  options.now = [&] { return now; };
  options.registry = &registry;
  server::conditions::ConditionEngine engine(std::move(options));
  engine.RunOnce();

  std::vector<storage::LayoutPtr> layouts;
  for (int job = 0; job < jobs; ++job) {
    for (int task = 0; task < tasks; ++task) {
      layouts.push_back(
          Register(store.get(), "job-" + std::to_string(job), static_cast<uint32_t>(task)));
    }
  }
  std::mt19937 random(1);
  std::normal_distribution<double> noise(0, 0.01);
  double cpu = 0;
  double cpu_second_half = 0;
  std::vector<double> values(kMetrics);
  for (int second = 0; second < seconds; ++second) {
    now += absl::Seconds(1);
    absl::BlockingCounter appended(static_cast<int>(layouts.size()));
    const std::vector<int64_t> times = {absl::ToUnixNanos(now)};
    const std::vector<int64_t> steps = {second};
    for (const auto& layout : layouts) {
      for (double& value : values) value = 1 + noise(random);
      values[0] = 2 + 5.0 / (second + 1) + noise(random);
      values[3] = 4096.0 * second;
      store->AppendRows({}, layout, {times, steps, values},
                        [&](const absl::Status&) { appended.DecrementCount(); });
    }
    appended.Wait();
    const double before = ThreadSeconds();
    engine.RunOnce();
    const double took = ThreadSeconds() - before;
    cpu += took;
    if (second >= seconds / 2) cpu_second_half += took;
  }
  size_t conditions = 0;
  size_t raised = 0;
  for (const auto& one : engine.board().All([](const std::string&) { return true; })) {
    ++conditions;
    raised += one->status == server::conditions::ConditionStatus::kTrue ? 1 : 0;
  }
  double bytes = 0;
  for (const auto& family : registry.Collect()) {
    if (family.name == "tacho_conditions_window_bytes") bytes = family.metric[0].gauge.value;
  }
  std::printf(
      "%d jobs x %d tasks x %zu series at 1 Hz for %d s, judged every %d s\n"
      "engine: %.2f %% of a core (second half: %.2f %%); %zu conditions, %zu true; windows %.1f "
      "MiB\n",
      jobs, tasks, kMetrics, seconds, interval, 100 * cpu / seconds,
      100 * cpu_second_half / (seconds - seconds / 2), conditions, raised, bytes / (1 << 20));
  engine.Stop();
  return store->Close().ok() ? 0 : 1;
}
