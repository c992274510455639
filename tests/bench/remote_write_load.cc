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

#include "tests/bench/bench_flags.h"
#include "tests/bench/load_flags.h"
#include "tests/bench/load_report.h"
#include "tests/bench/parallel_for.h"
#include "tests/bench/post_connection.h"
#include "tests/bench/remote_write_messages.h"

namespace tacho::bench {
namespace {

using Posts = std::vector<Post>;  // The posts of one connection.

// The requests of the agent's hosts in turns, or each with the rows of all of them.
Posts MakeAgentPosts(const LoadShape& shape, uint32_t agent, bool together) {
  if (together) {
    return MakeRemoteWrites(shape.fleet, shape.FirstHost(agent), shape.HostsOf(agent), shape.rows,
                            shape.batches);
  }
  std::vector<Posts> hosts;
  for (uint32_t i = 0; i < shape.HostsOf(agent); ++i) {
    hosts.push_back(
        MakeRemoteWrites(shape.fleet, shape.FirstHost(agent) + i, 1, shape.rows, shape.batches));
  }
  Posts posts;
  for (uint32_t i = 0; i < shape.batches; ++i) {
    for (Posts& host : hosts) posts.push_back(std::move(host[i]));
  }
  return posts;
}

std::vector<Posts> MakePosts(const LoadShape& shape, bool together) {
  if (!shape.columns.empty()) {
    return {MakeReplayWrites(shape.replay, ReadColumnTables(shape.columns))};
  }
  std::vector<Posts> posts(shape.agents);
  ParallelFor(shape.agents,
              [&](uint32_t agent) { posts[agent] = MakeAgentPosts(shape, agent, together); });
  return posts;
}

// Sends until everything is answered, or for so long: evenly spread over the connections at a rate;
// 0 is as fast as the answers come.
void Drive(std::vector<PostConnection>* connections, uint64_t posts, double posts_per_second,
           double max_seconds) {
  const int poll = epoll_create1(EPOLL_CLOEXEC);
  const auto watch = [poll](PostConnection* connection) {
    epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data = {.ptr = connection}};
    epoll_ctl(poll, EPOLL_CTL_ADD, connection->fd(), &event);
  };
  for (PostConnection& connection : *connections) watch(&connection);
  if (posts_per_second == 0) {
    for (PostConnection& connection : *connections) connection.Allow(posts);
  }
  const size_t count = connections->size();
  const double gap = 1 / posts_per_second;
  double due = MonotonicSeconds();
  const double end = due + max_seconds;
  uint64_t to_pace = posts_per_second == 0 ? 0 : posts;
  uint64_t paced = 0;
  size_t done = 0;
  while (done < count && MonotonicSeconds() < end) {
    for (; paced < to_pace && due <= MonotonicSeconds(); due += gap) {
      (*connections)[paced++ % count].Allow(1);
    }
    const double wait_ms = paced < to_pace ? (due - MonotonicSeconds()) * 1e3 : 100;
    epoll_event events[64];
    const int ready = epoll_wait(poll, events, 64, std::max(0, static_cast<int>(wait_ms)));
    for (int i = 0; i < ready; ++i) {
      auto* connection = static_cast<PostConnection*>(events[i].data.ptr);
      const bool was_done = connection->done();
      if (connection->OnReady()) watch(connection);
      if (!was_done && connection->done()) ++done;
    }
  }
}

int Main(int argc, char** argv) {
  std::map<std::string, std::string> flags = LoadFlags();
  flags.insert({{"port", "8428"}, {"max-seconds", "1800"}, {"together", "0"}});
  ParseFlags(argc, argv, &flags);
  const LoadShape shape = ReadLoadShape(flags);
  std::vector<Posts> posts = MakePosts(shape, NumberFlag(flags, "together") != 0);
  uint64_t post_count = 0;
  std::vector<PostConnection> connections;
  connections.reserve(posts.size());  // They stay where epoll knows them.
  for (Posts& of_connection : posts) {
    post_count += of_connection.size();
    connections.emplace_back(static_cast<uint16_t>(NumberFlag(flags, "port")),
                             std::move(of_connection));
  }
  const double cpu_before = OwnCpuSeconds();
  const double begin = MonotonicSeconds();
  Drive(&connections, post_count, shape.rate * shape.hosts / shape.rows,
        static_cast<double>(NumberFlag(flags, "max-seconds")));
  LoadReport report;
  report.seconds = MonotonicSeconds() - begin;
  report.client_cpu_seconds = OwnCpuSeconds() - cpu_before;
  for (const PostConnection& connection : connections) {
    const auto& latencies = connection.latencies_ms();
    report.latencies_ms.insert(report.latencies_ms.end(), latencies.begin(), latencies.end());
    report.samples += connection.answered_samples();
  }
  report.messages = report.latencies_ms.size();
  std::printf("%s\n", ToJson(&report).c_str());
  return 0;
}

}  // namespace
}  // namespace tacho::bench

int main(int argc, char** argv) { return tacho::bench::Main(argc, argv); }
