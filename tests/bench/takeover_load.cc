// How long agents wait for acknowledgements when an owner of a shard is lost: many agents in one
// process, each with the spool and the sender of tacho-agent, and a row a second.
//
//   tacho-bench-takeover MEMBERS SPARES AGENTS
//
// MEMBERS and SPARES are lists of addresses with commas, as in the configuration. Agent number n
// writes to shard n modulo the members. When all have begun, a line says that it is ready. Each
// line on standard input, a shard, is the moment of a loss: when every agent of that shard has an
// acknowledgement of a row that it made later, a line of JSON with the times is printed. "end" ends
// the program, which then says how many rows it made.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "agent/spool/spool.h"
#include "agent/stream/sender.h"
#include "proto/base/clock.h"
#include "proto/base/job_shard.h"
#include "rocksdb/env.h"

namespace tacho::agent {
namespace {

constexpr size_t kValues = 88;
constexpr absl::Duration kRowEvery = absl::Seconds(1);
constexpr absl::Duration kLookEvery = absl::Milliseconds(20);
constexpr absl::Duration kGiveUp = absl::Minutes(10);

std::string JobOfShard(uint32_t shard, uint32_t shards) {
  for (int i = 0;; ++i) {
    std::string job = absl::StrCat("takeover-", i);
    if (ShardOfJob(job, shards) == shard) return job;
  }
}

struct BenchAgent {
  uint32_t shard = 0;
  uint32_t layout = 0;
  std::unique_ptr<Spool> spool;
  std::unique_ptr<Sender> sender;
};

class Fleet {
 public:
  Fleet(const std::vector<std::string>& members, const std::vector<std::string>& spares, int agents)
      : env_(rocksdb::NewMemEnv(rocksdb::Env::Default())) {
    const auto shards = static_cast<uint32_t>(members.size());
    std::vector<std::string> jobs;
    for (uint32_t shard = 0; shard < shards; ++shard) jobs.push_back(JobOfShard(shard, shards));
    for (int i = 0; i < agents; ++i) {
      BenchAgent agent;
      agent.shard = static_cast<uint32_t>(i) % shards;
      auto spool = Spool::Open({.path = absl::StrCat("/spools/", i), .env = env_.get()});
      if (!spool.ok()) Fail(spool.status());
      agent.spool = *std::move(spool);
      v1::Layout layout;
      layout.mutable_source()->set_job(jobs[agent.shard]);
      layout.mutable_source()->set_host(absl::StrCat("host-", i));
      for (size_t value = 0; value < kValues; ++value) {
        layout.add_series()->mutable_metric()->set_name(absl::StrCat("m", value));
      }
      const auto defined = agent.spool->DefineLayout(layout);
      if (!defined.ok()) Fail(defined.status());
      agent.layout = *defined;
      StreamOptions options;
      options.addresses = {members[agent.shard]};
      options.addresses.insert(options.addresses.end(), spares.begin(), spares.end());
      for (uint32_t other = 0; other < shards; ++other) {
        if (other != agent.shard) options.addresses.push_back(members[other]);
      }
      options.one_store = true;
      if (shards > 1) {
        options.shards = shards;
        options.shard = agent.shard;
      }
      options.agent_id = absl::StrCat("agent-", i);
      agent.sender = std::make_unique<Sender>(std::move(options), agent.spool.get());
      agents_.push_back(std::move(agent));
    }
    for (BenchAgent& agent : agents_) agent.sender->Start();
    thread_ = std::thread([this] { MakeRows(); });
  }

  ~Fleet() {
    ended_ = true;
    thread_.join();
    for (BenchAgent& agent : agents_) agent.sender->BeginStop(absl::Seconds(10));
    for (BenchAgent& agent : agents_) agent.sender->Stop(absl::Seconds(10));
    uint64_t left = 0;
    for (const BenchAgent& agent : agents_) left += agent.spool->end() - agent.spool->begin();
    std::cout << "{\"rows\":" << rows_ << ",\"not_acknowledged\":" << left << "}" << std::endl;
  }

  // Waits until each agent of the shard has an acknowledgement of a row made from now on.
  void Measure(uint32_t shard) {
    const absl::Time began = MonotonicNow();
    struct Waiting {
      const BenchAgent* agent;
      uint64_t row;
    };
    std::vector<Waiting> waiting;
    for (const BenchAgent& agent : agents_) {
      if (agent.shard == shard) waiting.push_back({&agent, agent.spool->end()});
    }
    std::vector<double> seconds;
    while (!waiting.empty() && MonotonicNow() < began + kGiveUp) {
      absl::SleepFor(kLookEvery);
      const double passed = absl::ToDoubleSeconds(MonotonicNow() - began);
      std::erase_if(waiting, [&](const Waiting& one) {
        if (one.agent->spool->begin() <= one.row) return false;
        seconds.push_back(passed);
        return true;
      });
    }
    std::sort(seconds.begin(), seconds.end());
    const auto quantile = [&](double q) {
      if (seconds.empty()) return 0.0;
      return seconds[std::min(seconds.size() - 1,
                              static_cast<size_t>(q * static_cast<double>(seconds.size())))];
    };
    std::cout << "{\"shard\":" << shard << ",\"agents\":" << seconds.size()
              << ",\"never\":" << waiting.size() << ",\"p50_s\":" << quantile(0.5)
              << ",\"p99_s\":" << quantile(0.99) << ",\"max_s\":" << quantile(1) << "}"
              << std::endl;
  }

 private:
  [[noreturn]] static void Fail(const absl::Status& status) {
    std::cerr << "tacho-bench-takeover: " << status << "\n";
    std::exit(1);
  }

  // A row of each agent every second, spread over it.
  void MakeRows() {
    std::vector<double> values(kValues);
    const absl::Time began = MonotonicNow();
    for (uint64_t row = 0; !ended_; ++row) {
      const BenchAgent& agent = agents_[row % agents_.size()];
      const absl::Time due =
          began + kRowEvery * (static_cast<double>(row) / static_cast<double>(agents_.size()));
      if (const absl::Duration early = due - MonotonicNow(); early > absl::ZeroDuration()) {
        absl::SleepFor(early);
      }
      const int64_t now = absl::GetCurrentTimeNanos();
      for (size_t i = 0; i < kValues; ++i) {
        values[i] = static_cast<double>((row + i) % (i + 7));
      }
      const auto appended = agent.spool->AppendRows(agent.layout, {&now, 1}, {}, values, {});
      if (!appended.ok()) Fail(appended);
      ++rows_;
    }
  }

  const std::unique_ptr<rocksdb::Env> env_;  // Before the spools.
  std::vector<BenchAgent> agents_;
  std::atomic<bool> ended_ = false;
  std::atomic<uint64_t> rows_ = 0;
  std::thread thread_;
};

int Main(int argc, char** argv) {
  int agents = 0;
  if (argc != 4 || !absl::SimpleAtoi(argv[3], &agents) || agents < 1) {
    std::cerr << "usage: tacho-bench-takeover MEMBERS SPARES AGENTS\n";
    return 2;
  }
  const std::vector<std::string> members = absl::StrSplit(argv[1], ',', absl::SkipEmpty());
  const std::vector<std::string> spares = absl::StrSplit(argv[2], ',', absl::SkipEmpty());
  Fleet fleet(members, spares, agents);
  std::cout << "{\"ready\":true}" << std::endl;
  for (std::string line; std::getline(std::cin, line) && line != "end";) {
    uint32_t shard = 0;
    if (!absl::SimpleAtoi(line, &shard) || shard >= members.size()) {
      std::cerr << "tacho-bench-takeover: no shard: " << line << "\n";
      return 2;
    }
    fleet.Measure(shard);
  }
  return 0;
}

}  // namespace
}  // namespace tacho::agent

int main(int argc, char** argv) { return tacho::agent::Main(argc, argv); }
