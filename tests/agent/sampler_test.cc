#include "agent/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "tests/agent/recording_sink.h"

namespace tacho::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Does what it is told, in its thread.
class FakeSource : public Source {
 public:
  using Work = std::function<absl::Time(absl::Time now, RowSink* sink)>;
  FakeSource(std::string name, Work work) : name_(std::move(name)), work_(std::move(work)) {}

  absl::string_view name() const override { return name_; }
  absl::Time Poll(absl::Time now, RowSink* sink) override { return work_(now, sink); }

 private:
  const std::string name_;
  const Work work_;
};

class SamplerTest : public ::testing::Test {
 protected:
  void Add(const std::string& name, FakeSource::Work work) {
    sources_.push_back(std::make_unique<FakeSource>(name, std::move(work)));
  }
  void Start() {
    SamplerOptions options{.sink = &sink_, .ledger = ledger_};
    options.log = testing::LogTo(&log_);
    options.last_polls = last_polls_;
    options.stop_bound = stop_bound_;
    sampler_ = std::make_unique<Sampler>(std::move(sources_), std::move(options));
    sampler_->Start();
  }

  testing::RecordingSink sink_;
  std::shared_ptr<SourceLedger> ledger_ = std::make_shared<SourceLedger>();
  std::vector<std::unique_ptr<Source>> sources_;
  std::vector<std::string> log_;
  absl::Duration last_polls_ = absl::Seconds(60);
  absl::Duration stop_bound_ = absl::Seconds(60);
  std::unique_ptr<Sampler> sampler_;
};

TEST_F(SamplerTest, SlowSourceDelaysNoOther) {
  absl::Notification slow_may_go;
  absl::Notification quick_was_polled_ten_times;
  int polls = 0;
  Add("slow", [&](absl::Time, RowSink*) {
    slow_may_go.WaitForNotification();
    return absl::InfiniteFuture();
  });
  Add("quick", [&](absl::Time now, RowSink*) {
    if (++polls == 10) quick_was_polled_ten_times.Notify();
    return polls < 10 ? now : absl::InfiniteFuture();
  });
  Start();
  quick_was_polled_ten_times.WaitForNotification();
  slow_may_go.Notify();
  EXPECT_THAT(sampler_->Stop(), IsEmpty());
}

TEST_F(SamplerTest, CallsOfTheSinkComeOneAfterTheOther) {
  // RecordingSink takes no lock: a sanitizer sees two calls at once, and rows would be missing.
  constexpr int kPolls = 200;
  for (const char* name : {"a", "b", "c"}) {
    Add(name, [name, polls = 0](absl::Time now, RowSink* sink) mutable {
      if (polls == kPolls) return absl::InfiniteFuture();
      ++polls;
      v1::Event event;
      event.set_kind(name);
      EXPECT_TRUE(sink->AppendEvent(event, {absl::StrCat(name, "/at"), "1"}).ok());
      return now;
    });
  }
  Start();
  EXPECT_THAT(sampler_->Stop(), IsEmpty());
  EXPECT_EQ(sink_.events.size(), 3 * kPolls);
}

TEST_F(SamplerTest, StopPollsALastTime) {
  absl::Notification polled;
  std::atomic<int> polls = 0;
  Add("one", [&](absl::Time, RowSink*) {
    if (++polls == 1) polled.Notify();
    return absl::InfiniteFuture();
  });
  Start();
  polled.WaitForNotification();
  sampler_->Stop();
  EXPECT_EQ(polls, 2);
}

TEST_F(SamplerTest, SourceThatAlwaysHasMoreDoesNotKeepTheAgentFromStopping) {
  last_polls_ = absl::Milliseconds(10);
  Add("endless", [](absl::Time now, RowSink*) { return now; });
  Start();
  EXPECT_THAT(sampler_->Stop(), IsEmpty());
}

TEST_F(SamplerTest, StuckSourceIsLeftBehindAndSaidSoAndWritesNothingAfterwards) {
  // Not of this frame: the thread that is left behind outlives the sampler.
  struct Stuck {
    absl::Notification polled;
    absl::Notification may_go;
    absl::Notification has_gone;
    absl::Status answer;
  };
  auto stuck = std::make_shared<Stuck>();
  stop_bound_ = absl::Milliseconds(10);
  Add("stuck", [stuck](absl::Time, RowSink* sink) {
    if (stuck->polled.HasBeenNotified()) return absl::InfiniteFuture();
    stuck->polled.Notify();
    stuck->may_go.WaitForNotification();
    stuck->answer = sink->AppendEvent(v1::Event(), {});
    stuck->has_gone.Notify();
    return absl::InfiniteFuture();
  });
  Add("well", [](absl::Time, RowSink*) { return absl::InfiniteFuture(); });
  Start();
  stuck->polled.WaitForNotification();
  EXPECT_THAT(sampler_->Stop(), ElementsAre("stuck"));
  EXPECT_THAT(log_,
              ElementsAre(::testing::AllOf(HasSubstr("left sources behind"),
                                           HasSubstr("sources=stuck"), HasSubstr("waited=10ms"))));
  sampler_.reset();
  stuck->may_go.Notify();
  stuck->has_gone.WaitForNotification();
  EXPECT_EQ(stuck->answer.code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(sink_.events, IsEmpty());
}

TEST_F(SamplerTest, NeverStartedStopsAtOnce) {
  Add("one", [](absl::Time, RowSink*) { return absl::InfiniteFuture(); });
  Sampler sampler(std::move(sources_), {.sink = &sink_});
  EXPECT_THAT(sampler.Stop(), IsEmpty());
}

}  // namespace
}  // namespace tacho::agent
