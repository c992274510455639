// tacho-bench-remote-write: the load of tacho-bench-fleet for a peer that takes Prometheus remote
// write: the same hosts and values, one POST a batch, one keep-alive connection an agent, the next
// request after the answer to the last. Prints one line of JSON. One thread.
#include <sys/epoll.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/bench/bench_flags.h"
#include "tests/bench/fleet_generator.h"
#include "tests/bench/load_report.h"
#include "tests/bench/post_connection.h"
#include "tests/bench/remote_write_messages.h"

namespace tacho::bench {
namespace {

// The requests of several hosts in turns.
std::vector<std::string> Interleave(std::vector<std::vector<std::string>> hosts) {
  std::vector<std::string> posts;
  for (size_t i = 0; i < hosts.front().size(); ++i) {
    for (auto& host : hosts) posts.push_back(std::move(host[i]));
  }
  return posts;
}

// Sends until everything is answered: `batches` on each connection, `batches_per_second` spread
// evenly over the connections; 0 is as fast as the answers come.
void Drive(std::vector<PostConnection>* connections, uint64_t batches, double batches_per_second) {
  const int poll = epoll_create1(EPOLL_CLOEXEC);
  for (PostConnection& connection : *connections) {
    epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data = {.ptr = &connection}};
    epoll_ctl(poll, EPOLL_CTL_ADD, connection.fd(), &event);
  }
  if (batches_per_second == 0) {
    for (PostConnection& connection : *connections) connection.Allow(batches);
  }
  const size_t count = connections->size();
  const double gap = 1 / (batches_per_second * static_cast<double>(count));
  double due = MonotonicSeconds();
  uint64_t to_pace = batches_per_second == 0 ? 0 : batches * count;
  uint64_t paced = 0;
  size_t done = 0;
  while (done < count) {
    for (; paced < to_pace && due <= MonotonicSeconds(); due += gap) {
      (*connections)[paced++ % count].Allow(1);
    }
    const double wait_ms = paced < to_pace ? (due - MonotonicSeconds()) * 1e3 : 100;
    epoll_event events[64];
    const int ready = epoll_wait(poll, events, 64, std::max(0, static_cast<int>(wait_ms)));
    for (int i = 0; i < ready; ++i) {
      auto* connection = static_cast<PostConnection*>(events[i].data.ptr);
      const bool was_done = connection->done();
      connection->OnReady();
      if (!was_done && connection->done()) ++done;
    }
  }
}

int Main(int argc, char** argv) {
  std::map<std::string, std::string> flags = {
      {"port", "8428"}, {"agents", "200"}, {"rows", "1"},         {"batches", "100"},
      {"rate", "0"},    {"seed", "1"},     {"start-unix-s", "0"}, {"hosts-per-agent", "1"}};
  ParseFlags(argc, argv, &flags);
  const auto agents = static_cast<uint32_t>(NumberFlag(flags, "agents"));
  const auto hosts = static_cast<uint32_t>(NumberFlag(flags, "hosts-per-agent"));
  const auto rows = static_cast<uint32_t>(NumberFlag(flags, "rows"));
  const auto batches = static_cast<uint32_t>(NumberFlag(flags, "batches"));
  FleetOptions fleet;
  fleet.seed = static_cast<uint64_t>(NumberFlag(flags, "seed"));
  fleet.start_unix_ns = NumberFlag(flags, "start-unix-s") * 1'000'000'000;
  if (fleet.start_unix_ns == 0) {
    fleet.start_unix_ns = absl::ToUnixNanos(absl::Now() - absl::Hours(2));
  }
  std::vector<PostConnection> connections;
  connections.reserve(agents);  // They stay where epoll knows them.
  for (uint32_t agent = 0; agent < agents; ++agent) {
    std::vector<std::vector<std::string>> posts;
    for (uint32_t host = 0; host < hosts; ++host) {
      posts.push_back(MakeRemoteWrites(fleet, agent * hosts + host, rows, batches));
    }
    connections.emplace_back(static_cast<uint16_t>(NumberFlag(flags, "port")),
                             Interleave(std::move(posts)));
  }
  const double cpu_before = OwnCpuSeconds();
  const double begin = MonotonicSeconds();
  Drive(&connections, uint64_t{batches} * hosts,
        static_cast<double>(NumberFlag(flags, "rate")) / rows);
  LoadReport report;
  report.seconds = MonotonicSeconds() - begin;
  report.client_cpu_seconds = OwnCpuSeconds() - cpu_before;
  report.messages = uint64_t{batches} * hosts * agents;
  report.samples = report.messages * rows * kSeries;
  for (const PostConnection& connection : connections) {
    const auto& latencies = connection.latencies_ms();
    report.latencies_ms.insert(report.latencies_ms.end(), latencies.begin(), latencies.end());
  }
  std::printf("%s\n", ToJson(&report).c_str());
  return 0;
}

}  // namespace
}  // namespace tacho::bench

int main(int argc, char** argv) { return tacho::bench::Main(argc, argv); }
