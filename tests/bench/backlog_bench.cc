// What an agent's catching up costs, and what becomes of its fresh rows meanwhile: a spool that
// holds a backlog, the sender of the agent, and a real collector.
//
//   tacho-bench-backlog COLLECTOR_ADDRESS COLLECTOR_PID [messages] [rows a second, 0: no bound]
//
// Each message is one row of 88 values, as of a host of the reference fleet. Ten fresh rows a
// second are spooled meanwhile; their age is taken when a query first returns them.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "agent/spool/spool.h"
#include "agent/stream/sender.h"
#include "grpcpp/create_channel.h"
#include "tacho/v1/query.grpc.pb.h"

namespace tacho::agent {
namespace {

constexpr int kWidth = 88;
constexpr absl::Duration kFreshEvery = absl::Milliseconds(100);
constexpr char kJob[] = "backlog-bench";

double CpuSecondsOf(int pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  std::string line;
  std::getline(file, line);
  const std::vector<std::string> words =
      absl::StrSplit(line.substr(std::min(line.size(), line.rfind(')') + 2)), ' ');
  if (words.size() < 13) return 0;
  double user = 0;
  double system = 0;
  if (!absl::SimpleAtod(words[11], &user) || !absl::SimpleAtod(words[12], &system)) return 0;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double OwnCpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

class Bench {
 public:
  explicit Bench(const std::string& address)
      : stub_(
            v1::Query::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()))) {
    std::filesystem::remove_all(path_);
    auto spool = Spool::Open({.path = path_});
    if (!spool.ok()) std::abort();
    spool_ = *std::move(spool);
    v1::Layout layout;
    layout.mutable_source()->set_job(kJob);
    layout.mutable_source()->set_host("host");
    for (int i = 0; i < kWidth; ++i) {
      layout.add_series()->mutable_metric()->set_name(absl::StrCat("m", i));
    }
    layout_ = *spool_->DefineLayout(layout);
  }
  ~Bench() { std::filesystem::remove_all(path_); }

  void Append(absl::Time time) {
    const int64_t ns = absl::ToUnixNanos(time);
    std::vector<double> values(kWidth);
    for (int i = 0; i < kWidth; ++i)
      values[static_cast<size_t>(i)] = static_cast<double>(ns % (i + 7));
    if (!spool_->AppendRows(layout_, {&ns, 1}, {}, values, {}).ok()) std::abort();
  }

  // Time of the newest row that a query returns.
  absl::Time Newest() {
    grpc::ClientContext context;
    v1::LatestRequest request;
    request.mutable_selector()->set_job(kJob);
    request.mutable_selector()->add_metrics("m0");
    const auto reader = stub_->Latest(&context, request);
    v1::LatestResponse answer;
    int64_t newest = 0;
    while (reader->Read(&answer)) {
      for (const auto& sample : answer.samples()) newest = std::max(newest, sample.time_unix_ns());
    }
    reader->Finish();
    return absl::FromUnixNanos(newest);
  }

  Spool* spool() { return spool_.get(); }

 private:
  const std::string path_ = absl::StrCat("/tmp/tacho-backlog-bench.", getpid());
  std::unique_ptr<v1::Query::Stub> stub_;
  std::unique_ptr<Spool> spool_;
  uint32_t layout_ = 0;
};

int Run(const std::string& address, int collector, int messages, uint32_t rate) {
  Bench bench(address);
  const absl::Time begin = absl::Now();
  for (int i = messages; i > 0; --i) bench.Append(begin - absl::Seconds(i));
  if (!bench.spool()->Sync().ok()) return 1;
  const uint64_t split = bench.spool()->end();

  StreamOptions options;
  options.addresses = {address};
  options.agent_id = absl::StrCat("bench-", getpid());
  options.backlog_rows_per_second = rate;
  options.sync_interval = absl::Milliseconds(10);
  Sender sender(options, bench.spool());
  const double own = OwnCpuSeconds();
  const double theirs = CpuSecondsOf(collector);
  sender.Start();
  std::vector<double> ages_ms;
  const absl::Time started = absl::Now();
  std::vector<absl::Time> waiting;
  absl::Time next = started;
  while (bench.spool()->begin() < split) {
    const absl::Time now = absl::Now();
    if (now >= next) {
      bench.Append(now);
      waiting.push_back(now);
      next += kFreshEvery;
    }
    const absl::Time newest = bench.Newest();
    const absl::Time seen = absl::Now();
    std::erase_if(waiting, [&](absl::Time fresh) {
      if (fresh > newest) return false;
      ages_ms.push_back(absl::ToDoubleMilliseconds(seen - fresh));
      return true;
    });
    absl::SleepFor(absl::Milliseconds(5));
  }
  const double took = absl::ToDoubleSeconds(absl::Now() - started);
  sender.Stop(absl::Seconds(5));
  std::sort(ages_ms.begin(), ages_ms.end());
  const auto quantile = [&](double q) {
    return ages_ms.empty()
               ? 0.0
               : ages_ms[static_cast<size_t>(q * static_cast<double>(ages_ms.size() - 1))];
  };
  std::cout << absl::StrFormat(
      "rate %d: %d messages in %.1f s, %.0f a second; fresh rows seen after %.0f ms (p50), %.0f ms "
      "(p99), %d of them; CPU seconds: collector %.2f, this program with its queries %.2f\n",
      rate, messages, took, messages / took, quantile(0.5), quantile(0.99), ages_ms.size(),
      CpuSecondsOf(collector) - theirs, OwnCpuSeconds() - own);
  return 0;
}

}  // namespace
}  // namespace tacho::agent

int main(int argc, char** argv) {
  int pid = 0;
  int messages = 20'000;
  uint32_t rate = 0;
  const bool good = argc >= 3 && argc <= 5 && absl::SimpleAtoi(argv[2], &pid) &&
                    (argc < 4 || absl::SimpleAtoi(argv[3], &messages)) &&
                    (argc < 5 || absl::SimpleAtoi(argv[4], &rate));
  if (!good) {
    std::cerr << "tacho-bench-backlog COLLECTOR_ADDRESS COLLECTOR_PID [messages] [rate]\n";
    return 2;
  }
  return tacho::agent::Run(argv[1], pid, messages, rate);
}
