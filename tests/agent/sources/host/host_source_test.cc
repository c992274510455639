#include "agent/sources/host/host_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/agent/recording_sink.h"
#include "tests/support/tfevents_writer.h"

namespace tacho::agent {
namespace {

namespace fs = std::filesystem;
using ::tacho::agent::testing::RecordingSink;
using ::tacho::agent::testing::StoredSample;
using ::tacho::testing::WriteFile;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr uint64_t kStale = 0x7ff0000000000002;
constexpr char kNet[] = ": 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n";

class HostSourceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = (fs::path(::testing::TempDir()) /
             absl::StrCat("host_", ::testing::UnitTest::GetInstance()->current_test_info()->name(),
                          "_", ::getpid()))
                .string();
    fs::remove_all(root_);
    WriteFile(root_ + "/proc/stat", "cpu  100 0 0 100 0 0 0 0\ncpu0 100 0 0 100 0 0 0 0\n");
    WriteFile(root_ + "/proc/uptime", "10.5 20\n");
    config_.set_interval(absl::ToInt64Nanoseconds(absl::Seconds(10)));
    config_.set_job("hosts");
    config_.set_proc(root_ + "/proc");
    config_.set_cgroup(root_ + "/cgroup");
    HostOptions options;
    options.host = "host-a";
    options.log = testing::LogTo(&log_);
    source_ = std::make_unique<HostSource>(config_, std::move(options));
  }
  void TearDown() override { fs::remove_all(root_); }

  // The row of one poll, and when the source wants the next.
  std::vector<StoredSample> Poll(int64_t unix_seconds) {
    sink_.samples.clear();
    next_ = source_->Poll(absl::FromUnixSeconds(unix_seconds), &sink_);
    return sink_.samples;
  }

  const StoredSample* Find(absl::string_view metric, absl::string_view label = "") const {
    for (const StoredSample& sample : sink_.samples) {
      if (sample.metric == metric && sample.label == label) return &sample;
    }
    return nullptr;
  }

  std::string root_;
  config::v1::Agent::Host config_;
  RecordingSink sink_;
  std::vector<std::string> log_;
  std::unique_ptr<HostSource> source_;
  absl::Time next_;
};

TEST_F(HostSourceTest, RowHasNoTaskNoStepAndTheConfiguredJob) {
  Poll(1000);
  const StoredSample* uptime = Find("host_uptime_seconds");
  ASSERT_NE(uptime, nullptr);
  EXPECT_EQ(uptime->job, "hosts");
  EXPECT_EQ(uptime->task, -1);
  EXPECT_EQ(uptime->host, "host-a");
  EXPECT_EQ(uptime->step, INT64_MIN);
  EXPECT_EQ(uptime->time_ns, 1000 * 1'000'000'000LL);
  EXPECT_EQ(uptime->value(), 10.5);
}

TEST_F(HostSourceTest, SamplesAtMultiplesOfTheIntervalWithoutDriftOrBurst) {
  EXPECT_THAT(Poll(1003), Not(IsEmpty()));
  EXPECT_EQ(next_, absl::FromUnixSeconds(1010));
  EXPECT_THAT(Poll(1009), IsEmpty());
  EXPECT_THAT(Poll(1012), Not(IsEmpty())) << "late";
  EXPECT_EQ(next_, absl::FromUnixSeconds(1020));
  EXPECT_THAT(Poll(1995), Not(IsEmpty())) << "after a long pause, once";
  EXPECT_EQ(next_, absl::FromUnixSeconds(2000));
  EXPECT_THAT(Poll(1996), IsEmpty());
  EXPECT_THAT(Poll(500), Not(IsEmpty())) << "the clock was set back";
  EXPECT_EQ(next_, absl::FromUnixSeconds(510));
}

TEST_F(HostSourceTest, UtilizationIsStaleFirstAndKnownFromTheSecondSampleOn) {
  Poll(1000);
  ASSERT_NE(Find("host_cpu_utilization_ratio"), nullptr);
  EXPECT_EQ(Find("host_cpu_utilization_ratio")->bits, kStale);
  WriteFile(root_ + "/proc/stat", "cpu  175 0 0 125 0 0 0 0\ncpu0 175 0 0 125 0 0 0 0\n");
  Poll(1010);
  EXPECT_EQ(Find("host_cpu_utilization_ratio")->value(), 0.75);
}

TEST_F(HostSourceTest, MissingFilesAreSaidOnceInOneLine) {
  Poll(1000);
  ASSERT_THAT(log_, SizeIs(1));
  EXPECT_THAT(log_[0], HasSubstr("/proc/pressure/cpu: No such file"));
  EXPECT_THAT(log_[0], HasSubstr("/cgroup/memory.current"));
  Poll(1010);
  Poll(1100);
  EXPECT_THAT(log_, SizeIs(1));
}

TEST_F(HostSourceTest, FileThatGoesMissingLeavesStaleMarkersInTheSameLayout) {
  Poll(1000);
  fs::remove(root_ + "/proc/uptime");
  Poll(1010);
  ASSERT_NE(Find("host_uptime_seconds"), nullptr);
  EXPECT_EQ(Find("host_uptime_seconds")->bits, kStale);
  EXPECT_THAT(sink_.layouts, SizeIs(1));
  WriteFile(root_ + "/proc/uptime", "30 1\n");
  Poll(1020);
  EXPECT_EQ(Find("host_uptime_seconds")->value(), 30);
  EXPECT_THAT(sink_.layouts, SizeIs(1));
}

TEST_F(HostSourceTest, ChangedDevicesMakeAnotherLayout) {
  WriteFile(root_ + "/proc/net/dev", absl::StrCat("eth0", kNet));
  Poll(1000);
  WriteFile(root_ + "/proc/net/dev", absl::StrCat("eth0", kNet, "eth1", kNet));
  Poll(1010);
  EXPECT_NE(Find("host_network_receive_bytes_total", "device=eth1"), nullptr);
  EXPECT_THAT(sink_.layouts, SizeIs(2));
  WriteFile(root_ + "/proc/net/dev", absl::StrCat("eth0", kNet));
  Poll(1020);
  EXPECT_EQ(Find("host_network_receive_bytes_total", "device=eth1"), nullptr);
  EXPECT_THAT(sink_.layouts, SizeIs(2)) << "the first one again";
}

TEST_F(HostSourceTest, RefusedSampleIsSaidAndTheNextOneIsTaken) {
  sink_.RefuseAfter(0);
  Poll(1000);
  EXPECT_THAT(log_, SizeIs(2));
  sink_.RefuseNothing();
  EXPECT_THAT(Poll(1010), Not(IsEmpty()));
}

TEST_F(HostSourceTest, EveryMetricHasTypeUnitAndHelp) {
  config_.set_proc("/proc");
  HostSource real(config_, {.host = "host-a"});
  real.Poll(absl::FromUnixSeconds(1000), &sink_);
  ASSERT_THAT(sink_.layouts, SizeIs(1));
  EXPECT_GT(sink_.layouts[0].series_size(), 20);
  for (const auto& series : sink_.layouts[0].series()) {
    EXPECT_THAT(series.metric().name(), ::testing::StartsWith("host_"));
    EXPECT_NE(series.metric().type(), v1::METRIC_TYPE_UNSPECIFIED) << series.metric().name();
    EXPECT_NE(series.metric().unit(), "") << series.metric().name();
    EXPECT_NE(series.metric().help(), "") << series.metric().name();
    const bool counter = series.metric().type() == v1::METRIC_TYPE_COUNTER;
    EXPECT_EQ(counter,
              absl::string_view(series.metric().name()).find("_total") != absl::string_view::npos &&
                  series.metric().name() != "host_memory_total_bytes" &&
                  series.metric().name() != "host_swap_total_bytes")
        << series.metric().name();
  }
}

}  // namespace
}  // namespace tacho::agent
