// A receiver that answers as it likes: what it gets, and how often it is asked.
#include "server/forward/receiver.h"

#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "proto/base/stale_marker.h"
#include "proto/base/timed_wait.h"
#include "server/forward/forwarding.h"
#include "server/interop/formats/foreign_write.h"
#include "server/interop/formats/packed_body.h"
#include "server/interop/formats/prometheus_write.h"
#include "tests/server/forward/eager_receiver.h"
#include "tests/server/memory_store.h"
#include "tests/support/canned_http_server.h"

namespace tacho::server::forward {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kReceiverBase = int64_t{1'700'000'000} * 1'000'000'000;

std::string AnswerOf(int status, const std::string& headers = "") {
  return absl::StrCat("HTTP/1.1 ", status, " x\r\nContent-Length: 0\r\nConnection: close\r\n",
                      headers, "\r\n");
}
std::string Written(int samples) {
  return AnswerOf(204,
                  absl::StrCat("X-Prometheus-Remote-Write-Samples-Written: ", samples, "\r\n"));
}

class ReceiverTest : public ::testing::Test {
 protected:
  ReceiverTest() {
    options_ = EagerReceiver("vm", store_.get(), &registry_);
    options_.config.set_url(absl::StrCat("http://", server_.authority(), "/api/v1/write"));
    options_.config.set_protocol("auto");
    options_.config.set_timeout(absl::ToInt64Nanoseconds(absl::Seconds(10)));
    server_.AnswerEach([this](const std::string& request) { return Take(request); });
  }

  void Add(int first, int count, const std::string& metric = "loss") {
    const auto series = store_.AddSeries("job", MetricNamed(metric), 1, "h1");
    std::vector<TestSample> samples;
    for (int i = first; i < first + count; ++i) {
      samples.push_back({.time_ns = kReceiverBase + i * int64_t{1'000'000}, .value = double(i)});
    }
    store_.AddSamples(series, samples);
  }

  // Keeps the samples of a request that is answered with a 2xx.
  std::string Take(const std::string& request) {
    absl::MutexLock lock(&mutex_);
    ++requests_;
    const bool second = absl::StrContains(request, "proto=io.prometheus.write.v2.Request");
    heads_.push_back(request.substr(0, request.find("\r\n\r\n")));
    const auto message =
        interop::UnpackSnappy(request.substr(request.find("\r\n\r\n") + 4), 1 << 20);
    EXPECT_TRUE(message.ok()) << message.status();
    const auto write = !message.ok() ? message.status()
                       : second      ? interop::ReadWriteRequest2(*message)
                                     : interop::ReadWriteRequest1(*message);
    EXPECT_TRUE(write.ok()) << write.status();
    if (!write.ok()) return AnswerOf(400);
    const std::string answer = answer_         ? answer_(second, requests_)
                               : answer_write_ ? answer_write_(*write)
                                               : Written(4);
    const bool taken = answer.substr(9, 1) == "2";
    if (taken && (second ? absl::StrContains(answer, "Written") : true)) {
      for (const auto& sample : write->samples) {
        if (IsStaleMarker(sample.value)) {
          ends_.push_back(sample.time_ns);
        } else {
          ++got_[sample.value];
        }
      }
      for (const auto& series : write->series) keys_.insert(std::string(series.key));
    }
    return answer;
  }
  // Runs until so many distinct samples have come.
  void RunUntil(size_t samples) {
    auto receiver = Receiver::Create(options_);
    ASSERT_TRUE(receiver.ok()) << receiver.status();
    (*receiver)->Start();
    {
      absl::MutexLock lock(&mutex_);
      const auto enough = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return got_.size() >= samples;
      };
      EXPECT_TRUE(AwaitFor(&mutex_, absl::Condition(&enough), absl::Seconds(20)))
          << got_.size() << " samples";
    }
    // What was sent is committed once it says that it lacks nothing.
    for (int i = 0; i < 2000 && (*receiver)->Lag() > absl::ZeroDuration(); ++i) {
      absl::SleepFor(absl::Milliseconds(2));
    }
    (*receiver)->Stop();
  }
  std::map<double, int> Once(int first, int count) const {
    std::map<double, int> all;
    for (int i = first; i < first + count; ++i) all[i] = 1;
    return all;
  }
  double Value(const std::string& name) {
    double sum = 0;
    for (const auto& family : registry_.Collect()) {
      if (family.name != name) continue;
      for (const auto& metric : family.metric) sum += metric.counter.value;
    }
    return sum;
  }

  prometheus::Registry registry_;
  MemoryStore store_{4};  // A column has as many samples as a request.
  absl::Mutex mutex_;
  std::function<std::string(bool second, int number)> answer_;
  std::function<std::string(const interop::ForeignWrite&)> answer_write_;
  std::map<double, int> got_ ABSL_GUARDED_BY(mutex_);
  std::vector<int64_t> ends_ ABSL_GUARDED_BY(mutex_);  // Times of stale markers.
  std::set<std::string> keys_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> heads_ ABSL_GUARDED_BY(mutex_);
  int requests_ ABSL_GUARDED_BY(mutex_) = 0;
  ReceiverOptions options_;
  tacho::testing::CannedHttpServer server_;
};

TEST_F(ReceiverTest, JobsThatAreNotShownAreNotSent) {
  const auto copied = store_.AddSeries("hosts", MetricNamed("host_cpu"), 1, "h1");
  store_.AddSamples(copied, {{.time_ns = kReceiverBase, .value = 77}});
  Add(0, 8);
  options_.shows = [](absl::string_view job, absl::string_view host) {
    return job != "hosts" || host != "h1";
  };
  RunUntil(8);
  absl::MutexLock lock(&mutex_);
  EXPECT_EQ(got_, Once(0, 8));
}

TEST_F(ReceiverTest, EverythingComesOnceAndGoesOnAfterAnEnd) {
  Add(0, 50);
  RunUntil(50);
  Add(50, 50);
  store_.Reopen();
  options_.store = store_.get();
  RunUntil(100);
  absl::MutexLock lock(&mutex_);
  EXPECT_EQ(got_, Once(0, 100));
  EXPECT_EQ(Value("tacho_forward_samples_total"), 100);
  EXPECT_THAT(heads_.back(), HasSubstr("X-Prometheus-Remote-Write-Version: 2.0.0"));
}

TEST_F(ReceiverTest, AReceiverOfTheFirstVersionIsAskedOnceForTheSecond) {
  answer_ = [](bool second, int) { return AnswerOf(second ? 415 : 204); };
  Add(0, 20);
  RunUntil(20);
  absl::MutexLock lock(&mutex_);
  EXPECT_EQ(got_, Once(0, 20));
  EXPECT_THAT(heads_[0], HasSubstr("2.0.0"));
  for (size_t i = 1; i < heads_.size(); ++i) EXPECT_THAT(heads_[i], HasSubstr("0.1.0"));
}

TEST_F(ReceiverTest, AReceiverThatReadsNothingInTheSecondVersionGetsTheFirst) {
  answer_ = [](bool, int) { return AnswerOf(204); };
  Add(0, 20);
  RunUntil(20);
  absl::MutexLock lock(&mutex_);
  EXPECT_EQ(got_, Once(0, 20));
}

TEST_F(ReceiverTest, WhatIsRefusedForGoodIsLeftOutAndCounted) {
  answer_ = [](bool, int number) { return number == 3 ? AnswerOf(422) : Written(4); };
  Add(0, 20);
  RunUntil(16);
  absl::MutexLock lock(&mutex_);
  EXPECT_EQ(got_.size(), 16u);
  EXPECT_EQ(Value("tacho_forward_samples_left_out_total"), 4);
  EXPECT_EQ(Value("tacho_forward_samples_total"), 16);
}

TEST_F(ReceiverTest, WhatIsTooLargeComesInSmallerRequests) {
  options_.config.set_max_samples(16);
  answer_write_ = [](const interop::ForeignWrite& write) {
    return write.samples.size() > 3 ? AnswerOf(413) : Written(3);
  };
  Add(0, 20);
  Add(100, 10, "other");
  RunUntil(30);
  absl::MutexLock lock(&mutex_);
  std::map<double, int> all = Once(0, 20);
  all.merge(Once(100, 10));
  EXPECT_EQ(got_, all);
  EXPECT_EQ(Value("tacho_forward_samples_total"), 30);
  EXPECT_EQ(Value("tacho_forward_samples_left_out_total"), 0);
}

TEST_F(ReceiverTest, OnlyASampleThatIsTooLargeAloneIsLeftOut) {
  options_.config.set_max_samples(16);
  answer_write_ = [](const interop::ForeignWrite& write) {
    for (const auto& sample : write.samples) {
      if (sample.value == 7) return AnswerOf(413);
    }
    return Written(16);
  };
  Add(0, 20);
  RunUntil(19);
  absl::MutexLock lock(&mutex_);
  std::map<double, int> others = Once(0, 20);
  others.erase(7);
  EXPECT_EQ(got_, others);
  EXPECT_EQ(Value("tacho_forward_samples_left_out_total"), 1);
}

TEST_F(ReceiverTest, TroubleOfTheReceiverLosesNothing) {
  answer_ = [](bool, int number) { return number % 3 != 0 ? AnswerOf(503) : Written(4); };
  Add(0, 20);
  RunUntil(20);
  absl::MutexLock lock(&mutex_);
  EXPECT_EQ(got_, Once(0, 20));
  EXPECT_EQ(Value("tacho_forward_retries_total"), 10);
  EXPECT_THAT(heads_[1], HasSubstr("Retry-Attempt: 1"));
}

TEST_F(ReceiverTest, RetryAfterIsWaitedFor) {
  answer_ = [](bool, int number) {
    return number == 1 ? AnswerOf(429, "Retry-After: 1\r\n") : Written(4);
  };
  Add(0, 1);
  const absl::Time began = absl::Now();
  RunUntil(1);
  EXPECT_GE(absl::Now() - began, absl::Seconds(1));
}

TEST_F(ReceiverTest, SelectionRelabellingAndHeaders) {
  options_.config.add_match("{__name__=\"loss\"}");
  auto* rule = options_.config.add_relabel();
  rule->set_job("renamed-{job}");
  rule->set_host("{host}");
  rule->set_task("{task}");
  rule->set_attempt("{attempt}");
  rule->set_metric("{__name__}");
  (*options_.config.mutable_headers())["X-Scope-OrgID"] = "team";
  Add(0, 4);
  Add(100, 4, "other");
  RunUntil(4);
  absl::MutexLock lock(&mutex_);
  EXPECT_EQ(got_, Once(0, 4));
  ASSERT_EQ(keys_.size(), 1u);
  const storage::Labels labels = *interop::LabelsOfKey(*keys_.begin());
  EXPECT_THAT(labels, ::testing::ElementsAre(
                          ::testing::Pair("__name__", "loss"), ::testing::Pair("attempt", "0"),
                          ::testing::Pair("host", "h1"), ::testing::Pair("job", "renamed-job"),
                          ::testing::Pair("task", "1")));
  EXPECT_THAT(heads_[0], HasSubstr("X-Scope-OrgID: team"));
}

TEST_F(ReceiverTest, SeveralConnectionsShareTheSeries) {
  options_.config.set_connections(3);
  answer_ = [](bool, int) { return Written(1000); };
  for (int i = 0; i < 10; ++i) Add(i * 10, 10, absl::StrCat("metric", i));
  RunUntil(100);
  absl::MutexLock lock(&mutex_);
  EXPECT_EQ(got_, Once(0, 100));
}

TEST_F(ReceiverTest, AnEndIsToldOnceWithTheStaleMarker) {
  answer_ = [](bool, int) { return Written(4); };
  options_.ends_every = absl::Milliseconds(1);
  Add(0, 4);  // Long ago by the clock of the receiver.
  auto receiver = Receiver::Create(options_);
  ASSERT_TRUE(receiver.ok()) << receiver.status();
  (*receiver)->Start();
  {
    absl::MutexLock lock(&mutex_);
    const auto told = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !ends_.empty(); };
    EXPECT_TRUE(AwaitFor(&mutex_, absl::Condition(&told), absl::Seconds(60)));
  }
  // It would come again meanwhile.
  absl::SleepFor(absl::Milliseconds(50));
  (*receiver)->Stop();
  absl::MutexLock lock(&mutex_);
  EXPECT_EQ(got_, Once(0, 4));
  EXPECT_THAT(ends_, ::testing::ElementsAre(kReceiverBase + 3 * int64_t{1'000'000} + 1'000'000));
  EXPECT_EQ(Value("tacho_forward_series_ended_total"), 1);
}

TEST_F(ReceiverTest, AggregatesThatLeaveThePageEnd) {
  options_.config.set_series(false);
  options_.config.mutable_aggregates()->set_interval(
      absl::ToInt64Nanoseconds(absl::Milliseconds(20)));
  int evaluations = 0;
  options_.page = [&evaluations] {
    const bool first = ++evaluations == 1;
    return absl::StrCat("# TYPE tacho_job_loss gauge\ntacho_job_loss{job=\"a\"} ", evaluations,
                        "\n", first ? "tacho_job_loss{job=\"b\"} 100\n" : "");
  };
  answer_ = [](bool, int) { return Written(1); };
  RunUntil(4);
  absl::MutexLock lock(&mutex_);
  EXPECT_EQ(ends_.size(), 1u);
  EXPECT_EQ(Value("tacho_forward_series_ended_total"), 1);
}

TEST_F(ReceiverTest, AggregatesComeAtEachIntervalAndAreNotTriedAgain) {
  options_.config.set_series(false);
  options_.config.mutable_aggregates()->set_interval(
      absl::ToInt64Nanoseconds(absl::Milliseconds(20)));
  double evaluations = 0;
  options_.page = [&evaluations] {
    return absl::StrCat("# TYPE tacho_job_loss gauge\ntacho_job_loss{job=\"job\",stat=\"avg\"} ",
                        ++evaluations, "\n");
  };
  answer_ = [](bool, int number) { return number == 2 ? AnswerOf(503) : Written(1); };
  Add(0, 4);  // It gets nothing of what is stored.
  RunUntil(5);
  absl::MutexLock lock(&mutex_);
  EXPECT_EQ(got_.count(1), 1u);
  EXPECT_EQ(got_.count(2), 0u) << "it was away then";
  EXPECT_EQ(got_.count(3), 1u);
  EXPECT_EQ(got_.count(0), 0u);
  EXPECT_GE(Value("tacho_forward_aggregates_missed_total"), 1);
  EXPECT_EQ(Value("tacho_forward_retries_total"), 0);
  ASSERT_EQ(keys_.size(), 1u);
  EXPECT_THAT(
      *interop::LabelsOfKey(*keys_.begin()),
      ::testing::ElementsAre(::testing::Pair("__name__", "tacho_job_loss"),
                             ::testing::Pair("job", "job"), ::testing::Pair("stat", "avg")));
}

TEST_F(ReceiverTest, MistakesOfTheConfigurationAreNamed) {
  const auto error = [this](const std::function<void(config::v1::Forward*)>& change) {
    ReceiverOptions options = options_;
    change(&options.config);
    return std::string(Receiver::Create(options).status().message());
  };
  EXPECT_THAT(error([](auto* config) { config->set_url("vm:8428"); }), HasSubstr("forward[0].url"));
  for (const char* url : {"http://otel", "http://otel:4317/v1/metrics", "otel:4317", "http://:1"}) {
    EXPECT_THAT(error([url](auto* config) {
                  config->set_protocol("otlp");
                  config->set_url(url);
                }),
                HasSubstr("forward[0].url"))
        << url;
  }
  for (const char* header : {"x-trace-bin", "grpc-timeout", "a b"}) {
    EXPECT_THAT(error([header](auto* config) {
                  config->set_protocol("otlp");
                  config->set_url("http://otel:4317");
                  (*config->mutable_headers())[header] = "a";
                }),
                HasSubstr("forward[0].headers"))
        << header;
  }
  EXPECT_THAT(error([](auto* config) { config->add_match("{"); }),
              HasSubstr("forward[0].match[0]"));
  EXPECT_THAT(error([](auto* config) { config->mutable_aggregates()->add_match("{"); }),
              HasSubstr("forward[0].aggregates.match[0]"));
  EXPECT_THAT(error([](auto* config) { config->set_series(false); }),
              HasSubstr("forward[0].series"));
  EXPECT_THAT(error([](auto* config) { config->set_username("a"); }),
              HasSubstr("forward[0].password_file"));
  EXPECT_THAT(error([](auto* config) { (*config->mutable_headers())["user-agent"] = "a"; }),
              HasSubstr("forward[0].headers"));
  EXPECT_THAT(error([](auto* config) {
                auto* rule = config->add_relabel();
                rule->set_job("{");
              }),
              HasSubstr("forward[0].relabel[0]"));
  config::v1::Collector two;
  *two.add_forward() = options_.config;
  *two.add_forward() = options_.config;
  EXPECT_THAT(
      Forwarding::Create({two, store_.get(), &registry_, absl::Now, nullptr, nullptr, "1", {}})
          .status()
          .message(),
      HasSubstr("forward[1].name"));
}

}  // namespace
}  // namespace tacho::server::forward
