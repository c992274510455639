#include "tests/bench/load_flags.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/bench/bench_flags.h"

namespace tacho::bench {

std::map<std::string, std::string> LoadFlags() {
  return {{"agents", "200"},       {"hosts", "0"},  {"rows", "1"},         {"batches", "100"},
          {"rate", "0"},           {"seed", "1"},   {"start-unix-s", "0"}, {"skip-rows", "0"},
          {"interval-ms", "1000"}, {"columns", ""}, {"job", "real"},       {"hosts-per-job", "50"},
          {"job-prefix", "fleet-"}};
}

LoadShape ReadLoadShape(const std::map<std::string, std::string>& flags) {
  const auto natural = [&flags](const char* name) {
    return static_cast<uint32_t>(NumberFlag(flags, name));
  };
  LoadShape load;
  load.columns = flags.at("columns");
  load.agents = natural("agents");
  load.hosts = natural("hosts");
  if (load.hosts == 0) load.hosts = load.agents;
  load.rows = natural("rows");
  load.batches = natural("batches");
  load.rate = static_cast<double>(NumberFlag(flags, "rate"));
  load.fleet.seed = static_cast<uint64_t>(NumberFlag(flags, "seed"));
  load.fleet.skip_rows = natural("skip-rows");
  load.fleet.hosts_per_job = std::max<uint32_t>(1, natural("hosts-per-job"));
  load.fleet.job_prefix = flags.at("job-prefix");
  load.fleet.interval_ns = NumberFlag(flags, "interval-ms") * 1'000'000;
  load.fleet.start_unix_ns = NumberFlag(flags, "start-unix-s") * 1'000'000'000;
  if (load.fleet.start_unix_ns == 0) {
    load.fleet.start_unix_ns = absl::ToUnixNanos(absl::Now() - absl::Hours(2));
  }
  load.replay.job = flags.at("job");
  load.replay.start_unix_ns = load.fleet.start_unix_ns;
  return load;
}

}  // namespace tacho::bench
