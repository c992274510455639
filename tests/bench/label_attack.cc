// A flood of labels: one agent defines series with ever new label sets, each in a layout with a row
// of values behind it, while another sends a row at a time and notes when it is acknowledged. The
// limits refuse nearly all of the sets; with --within-limits, none.
//
// Reports on one line of JSON what the attacker sent, what the collector answered, and the
// neighbour's acknowledgements without and during the attack.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/create_channel.h"
#include "tacho/v1/ingest.grpc.pb.h"
#include "tests/bench/bench_flags.h"
#include "tests/bench/load_report.h"

namespace tacho::bench {
namespace {

using Stream = grpc::ClientReaderWriter<v1::ClientMessage, v1::ServerMessage>;

// Messages of the attacker that may be on their way.
constexpr uint64_t kWindow = 8;
constexpr int kNeighbourSeries = 88;

int64_t UnixNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

[[noreturn]] void Fail(const std::string& why) {
  std::fprintf(stderr, "label_attack: %s\n", why.c_str());
  std::exit(1);
}

// An agent on a connection of its own. Send() for one thread.
class Agent {
 public:
  Agent(const std::string& address, const std::string& id) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channel_ = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
    stub_ = v1::Ingest::NewStub(channel_);
    stream_ = stub_->Stream(&context_);
    v1::ClientMessage hello;
    hello.mutable_hello()->set_agent_id(id);
    hello.mutable_hello()->set_spool_generation(static_cast<uint64_t>(UnixNs()));
    hello.mutable_hello()->set_first_sequence(1);
    Send(hello);
    v1::ServerMessage welcome;
    if (!stream_->Read(&welcome) || !welcome.has_welcome()) Fail("no Welcome for " + id);
    reader_ = std::thread([this] { Read(); });
  }
  ~Agent() {
    stream_->WritesDone();
    reader_.join();
    const grpc::Status status = stream_->Finish();
    if (!status.ok()) Fail("a stream ended with " + status.error_message());
  }

  void Send(const v1::ClientMessage& message) {
    if (!stream_->Write(message)) Fail("a stream broke: " + stream_->Finish().error_message());
  }
  void AwaitDurable(uint64_t sequence) {
    absl::MutexLock lock(&mutex_);
    const auto durable = [this, sequence]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return durable_ >= sequence || ended_;
    };
    mutex_.Await(absl::Condition(&durable));
    if (durable_ < sequence) Fail("a stream ended before its last acknowledgement");
  }
  // When the sequence was acknowledged, by MonotonicSeconds(); waits for it.
  double AcknowledgedAt(uint64_t sequence) {
    AwaitDurable(sequence);
    absl::MutexLock lock(&mutex_);
    return durable_at_;
  }

  struct Told {
    uint64_t samples = 0;
    uint64_t series = 0;
    uint64_t throttles = 0;
    std::string example;
    std::string detail;
  };
  Told told() {
    absl::MutexLock lock(&mutex_);
    return told_;
  }

 private:
  void Read() {
    for (v1::ServerMessage message; stream_->Read(&message);) {
      const double now = MonotonicSeconds();
      absl::MutexLock lock(&mutex_);
      told_.throttles += message.has_throttle() ? 1 : 0;
      if (!message.has_ack()) continue;
      durable_ = message.ack().durable_sequence();
      durable_at_ = now;
      for (const v1::Reject& reject : message.ack().rejects()) {
        told_.samples += reject.samples();
        told_.series += reject.series();
        told_.example = reject.example();
        told_.detail = reject.detail();
      }
    }
    absl::MutexLock lock(&mutex_);
    ended_ = true;
  }

  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Ingest::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<Stream> stream_;
  std::thread reader_;
  absl::Mutex mutex_;
  uint64_t durable_ ABSL_GUARDED_BY(mutex_) = 0;
  double durable_at_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  Told told_ ABSL_GUARDED_BY(mutex_);
};

// Sends a row every `interval` and waits for its acknowledgement, until it is stopped.
class Neighbour {
 public:
  Neighbour(const std::string& address, std::chrono::milliseconds interval)
      : agent_(address, "neighbour"), interval_(interval), thread_([this] { Run(); }) {}

  // What was measured since the last call, ms.
  std::vector<float> Take() {
    absl::MutexLock lock(&mutex_);
    return std::exchange(latencies_ms_, {});
  }
  void Stop() {
    stopping_ = true;
    thread_.join();
  }

 private:
  void Run() {
    v1::ClientMessage layout;
    layout.mutable_layout()->mutable_source()->set_job("training-run");
    layout.mutable_layout()->mutable_source()->set_host("honest-host");
    for (int i = 0; i < kNeighbourSeries; ++i) {
      layout.mutable_layout()->add_series()->mutable_metric()->set_name(absl::StrCat("metric_", i));
    }
    agent_.Send(layout);
    v1::ClientMessage row;
    row.mutable_batch()->add_times_unix_ns(0);
    for (int i = 0; i < kNeighbourSeries; ++i) row.mutable_batch()->add_values(i);
    auto next = std::chrono::steady_clock::now();
    for (uint64_t sequence = 1; !stopping_; ++sequence) {
      row.mutable_batch()->set_sequence(sequence);
      row.mutable_batch()->set_times_unix_ns(0, UnixNs());
      const double sent = MonotonicSeconds();
      agent_.Send(row);
      const double acknowledged = agent_.AcknowledgedAt(sequence);
      {
        absl::MutexLock lock(&mutex_);
        latencies_ms_.push_back(static_cast<float>(1e3 * (acknowledged - sent)));
      }
      next = std::max(next + interval_, std::chrono::steady_clock::now());
      std::this_thread::sleep_until(next);
    }
  }

  Agent agent_;
  const std::chrono::milliseconds interval_;
  std::atomic<bool> stopping_{false};
  absl::Mutex mutex_;
  std::vector<float> latencies_ms_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

// A layout whose series differ in their labels, rewritten in place for each message.
class Flood {
 public:
  // Below limits.values_per_label and limits.series_per_metric as they are by default.
  static constexpr uint64_t kValues = 10'000;
  static constexpr uint64_t kSetsOfMetric = 400'000;

  Flood(uint64_t series, bool with_rows, bool within_limits)
      : with_rows_(with_rows), within_limits_(within_limits) {
    v1::Layout* layout = layout_.mutable_layout();
    layout->mutable_source()->set_job("flood");
    layout->mutable_source()->set_host("hostile-host");
    for (uint64_t i = 0; i < series; ++i) {
      v1::Layout::Series* one = layout->add_series();
      one->mutable_metric()->set_name("requests");
      v1::Label* label = one->add_labels();
      label->set_name("request_id");
      label->set_value(std::string(12, '0'));
      if (within_limits_) {
        label = one->add_labels();
        label->set_name("user");
        label->set_value(std::string(12, '0'));
      }
      row_.mutable_batch()->add_values(1);
    }
    row_.mutable_batch()->add_times_unix_ns(0);
  }

  // Sends `sets` label sets that nobody has sent before. Returns the last sequence.
  uint64_t Send(uint64_t sets, Agent* agent) {
    const auto width = static_cast<uint64_t>(layout_.layout().series_size());
    uint64_t sequence = 0;
    for (uint64_t sent = 0; sent < sets; sent += width) {
      for (uint64_t i = 0; i < width; ++i) {
        v1::Layout::Series* const one =
            layout_.mutable_layout()->mutable_series(static_cast<int>(i));
        Number(sent + i, one);
      }
      agent->Send(layout_);
      ++sequence;
      row_.mutable_batch()->set_sequence(sequence);
      row_.mutable_batch()->set_times_unix_ns(0, UnixNs());
      if (with_rows_ || sent + width >= sets) {
        agent->Send(row_);
      } else {
        --sequence;
      }
      if (sequence > kWindow) agent->AwaitDurable(sequence - kWindow);
    }
    return sequence;
  }

 private:
  void Number(uint64_t number, v1::Layout::Series* series) const {
    if (!within_limits_) return Write(number, series->mutable_labels(0));
    series->mutable_metric()->set_name(absl::StrCat("requests_", number / kSetsOfMetric));
    Write(number % kValues, series->mutable_labels(0));
    Write(number / kValues, series->mutable_labels(1));
  }
  static void Write(uint64_t number, v1::Label* label) {
    std::string* const value = label->mutable_value();
    for (size_t digit = value->size(); digit-- > 0; number /= 10) {
      (*value)[digit] = static_cast<char>('0' + number % 10);
    }
  }

  const bool with_rows_;
  const bool within_limits_;
  v1::ClientMessage layout_;
  v1::ClientMessage row_;
};

std::string Quantiles(std::vector<float> latencies_ms) {
  if (latencies_ms.empty()) return "{\"rows\": 0}";
  std::sort(latencies_ms.begin(), latencies_ms.end());
  const auto at = [&](double share) {
    return latencies_ms[static_cast<size_t>(share * static_cast<double>(latencies_ms.size() - 1))];
  };
  return absl::StrFormat("{\"rows\": %d, \"p50_ms\": %.2f, \"p99_ms\": %.2f, \"max_ms\": %.2f}",
                         latencies_ms.size(), at(0.5), at(0.99), latencies_ms.back());
}

int Run(int argc, char** argv) {
  std::map<std::string, std::string> flags = {
      {"address", ""},         {"sets", "1000000"},   {"sets-a-layout", "20000"}, {"rows", "1"},
      {"quiet-seconds", "10"}, {"interval-ms", "20"}, {"within-limits", "0"}};
  ParseFlags(argc, argv, &flags);
  const std::string& address = flags["address"];
  const auto width = static_cast<uint64_t>(NumberFlag(flags, "sets-a-layout"));
  const auto sets = static_cast<uint64_t>(NumberFlag(flags, "sets")) / width * width;
  if (sets == 0) Fail("--sets must be at least --sets-a-layout");
  Neighbour neighbour(address, std::chrono::milliseconds(NumberFlag(flags, "interval-ms")));
  std::this_thread::sleep_for(std::chrono::seconds(1));
  neighbour.Take();  // Its first messages registered a layout.
  std::this_thread::sleep_for(std::chrono::seconds(NumberFlag(flags, "quiet-seconds")));
  const std::vector<float> quiet = neighbour.Take();

  Agent::Told told;
  const double begin = MonotonicSeconds();
  {
    Agent attacker(address, "attacker");
    Flood flood(width, NumberFlag(flags, "rows") != 0, NumberFlag(flags, "within-limits") != 0);
    attacker.AwaitDurable(flood.Send(sets, &attacker));
    told = attacker.told();
  }
  const double seconds = MonotonicSeconds() - begin;
  const std::vector<float> attacked = neighbour.Take();
  neighbour.Stop();
  std::printf(
      "{\"sets\": %llu, \"seconds\": %.2f, \"told_series\": %llu, \"told_samples\": %llu, "
      "\"throttles\": %llu, \"quiet\": %s, \"attacked\": %s}\n",
      static_cast<unsigned long long>(sets), seconds, static_cast<unsigned long long>(told.series),
      static_cast<unsigned long long>(told.samples),
      static_cast<unsigned long long>(told.throttles), Quantiles(quiet).c_str(),
      Quantiles(attacked).c_str());
  return 0;
}

}  // namespace
}  // namespace tacho::bench

int main(int argc, char** argv) { return tacho::bench::Run(argc, argv); }
