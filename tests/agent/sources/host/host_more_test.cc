// Tests what a host reports beyond host_parsers_test.cc, over recorded and made files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/timex.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/sources/host/file_systems.h"
#include "agent/sources/host/host_parsers.h"
#include "agent/sources/host/host_settings.h"
#include "agent/sources/host/process_source.h"
#include "agent/sources/host/process_stat.h"
#include "agent/sources/host/sampled_source.h"
#include "client/recorder.h"
#include "tests/agent/recording_sink.h"
#include "tests/support/tfevents_writer.h"

namespace tacho::agent {
namespace {

namespace fs = std::filesystem;
using ::tacho::agent::testing::RecordingSink;
using ::tacho::testing::WriteFile;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr uint64_t kStale = 0x7ff0000000000002;

std::map<std::string, double> Found(const Sample& sample) {
  std::map<std::string, double> found;
  for (const Sample::Entry& entry : sample.entries()) {
    found[entry.labels.empty() ? entry.metric->name
                               : absl::StrCat(entry.metric->name, "/", entry.labels[0].second)] =
        entry.value;
  }
  return found;
}

TEST(CoreSummaryTest, OneBusyCoreShows) {
  const std::string before = "cpu  0 0 0 0\ncpu0 0 0 0 0\ncpu1 0 0 0 0\ncpu10 0 0 0 0\nintr 1\n";
  const std::string after = "cpu  0 0 0 0\ncpu0 95 0 0 5\ncpu1 4 0 1 95\ncpu10 50 0 0 50\n";
  ASSERT_EQ(ParseCoreTicks(before).size(), 3);
  Sample out;
  AddCoreSummary(ParseCoreTicks(before), ParseCoreTicks(after), &out);
  EXPECT_THAT(Found(out),
              UnorderedElementsAre(Pair("host_cpu_core_utilization_min_ratio", 0.05),
                                   Pair("host_cpu_core_utilization_max_ratio", 0.95),
                                   Pair("host_cpu_cores_busy", 1), Pair("host_cpu_cores_idle", 1)));
}

TEST(CoreSummaryTest, FirstLookAndChangedCoresAreStale) {
  Sample out;
  AddCoreSummary({}, ParseCoreTicks("cpu0 1 1 1 1\n"), &out);
  ASSERT_EQ(out.entries().size(), 4);
  for (const Sample::Entry& entry : out.entries()) {
    uint64_t bits = 0;
    std::memcpy(&bits, &entry.value, sizeof(bits));
    EXPECT_EQ(bits, kStale) << entry.metric->name;
  }
}

// Lines of a machine with Linux 6.1, shortened.
TEST(TcpTest, CountersAreFoundByTheirNames) {
  Sample out;
  EXPECT_TRUE(ParseNetSnmp(
      "Ip: Forwarding DefaultTTL\nIp: 1 64\n"
      "Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets "
      "CurrEstab InSegs OutSegs RetransSegs InErrs OutRsts InCsumErrors\n"
      "Tcp: 1 200 120000 -1 301 58 7 3 12 90123 80456 42 1 66 0\n",
      &out));
  EXPECT_TRUE(ParseNetNetstat(
      "TcpExt: SyncookiesSent ListenDrops TCPTimeouts TCPLostRetransmit\nTcpExt: 0 5 9 2\n"
      "IpExt: InNoRoutes\nIpExt: 3\n",
      &out));
  EXPECT_THAT(
      Found(out),
      UnorderedElementsAre(
          Pair("host_tcp_retransmitted_segments_total", 42),
          Pair("host_tcp_sent_segments_total", 80456), Pair("host_tcp_receive_errors_total", 1),
          Pair("host_tcp_resets_sent_total", 66), Pair("host_tcp_failed_connects_total", 7),
          Pair("host_tcp_connections", 12), Pair("host_tcp_timeouts_total", 9),
          Pair("host_tcp_lost_retransmissions_total", 2), Pair("host_tcp_listen_drops_total", 5)));
  Sample none;
  for (const char* text : {"", "Tcp:", "Tcp: A B\n", "Tcp: RetransSegs\nTcp: x\n"}) {
    EXPECT_FALSE(ParseNetSnmp(text, &none)) << text;
  }
  EXPECT_THAT(none.entries(), IsEmpty());
}

TEST(HostMemoryTest, LimitsOfTheControlGroup) {
  Sample out;
  EXPECT_TRUE(ParseCgroupCpuMax("150000 100000\n", &out));
  EXPECT_TRUE(ParseCgroupCpuMax("max 100000\n", &out));
  EXPECT_TRUE(ParseCgroupPids("17\n", &out));
  EXPECT_THAT(Found(out), UnorderedElementsAre(Pair("host_cgroup_cpu_limit_cpus", 1.5),
                                               Pair("host_cgroup_pids", 17)));
  EXPECT_FALSE(ParseCgroupCpuMax("1 0\n", &out));
  EXPECT_FALSE(ParseCgroupCpuMax("", &out));
}

TEST(HostSettingsTest, TransparentHugePagesHaveOneSettingInForce) {
  Sample out;
  EXPECT_TRUE(ParseTransparentHugePages("always [madvise] never\n", &out));
  EXPECT_THAT(Found(out), UnorderedElementsAre(Pair("host_transparent_huge_pages/always", 0),
                                               Pair("host_transparent_huge_pages/madvise", 1),
                                               Pair("host_transparent_huge_pages/never", 0)));
  EXPECT_FALSE(ParseTransparentHugePages("always never\n", &out));
}

TEST(HostSettingsTest, ClockThatIsKeptAndClockThatIsNot) {
  timex answer = {};
  answer.status = STA_PLL | STA_NANO;
  answer.offset = -2'000'000;
  answer.maxerror = 1500;
  answer.esterror = 20;
  answer.freq = 65536 * 10;
  Sample out;
  AddClockState(answer, TIME_OK, &out);
  const auto found = Found(out);
  EXPECT_EQ(found.at("host_clock_synchronized"), 1);
  EXPECT_DOUBLE_EQ(found.at("host_clock_offset_seconds"), -0.002);
  EXPECT_DOUBLE_EQ(found.at("host_clock_max_error_seconds"), 0.0015);
  EXPECT_DOUBLE_EQ(found.at("host_clock_frequency_ratio"), 1e-5);
  answer.status = STA_UNSYNC;
  Sample lost;
  AddClockState(answer, TIME_ERROR, &lost);
  EXPECT_EQ(Found(lost).at("host_clock_synchronized"), 0);
  EXPECT_DOUBLE_EQ(Found(lost).at("host_clock_offset_seconds"), -2) << "in microseconds";
  Sample refused;
  AddClockState(answer, -1, &refused);
  EXPECT_THAT(refused.entries(), IsEmpty());
}

class HostTreeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = (fs::path(::testing::TempDir()) /
             absl::StrCat("tree_", ::testing::UnitTest::GetInstance()->current_test_info()->name(),
                          "_", ::getpid()))
                .string();
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }
  std::string root_;
};

TEST_F(HostTreeTest, SettingsNodesAndThrottlesAreFoundBelowSys) {
  WriteFile(root_ + "/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n");
  const std::string node = root_ + "/devices/system/node/node0";
  WriteFile(node + "/meminfo", "Node 0 MemTotal:       16 kB\nNode 0 MemFree:        4 kB\n");
  WriteFile(node + "/numastat", "numa_hit 10\nnuma_miss 2\ninterleave_hit 5\n");
  for (int cpu = 0; cpu < 3; ++cpu) {
    const std::string path = absl::StrCat(root_, "/devices/system/cpu/cpu", cpu);
    WriteFile(path + "/thermal_throttle/core_throttle_count", absl::StrCat(cpu + 1, "\n"));
    WriteFile(path + "/thermal_throttle/package_throttle_count", "7\n");
    WriteFile(path + "/topology/physical_package_id", absl::StrCat(cpu / 2, "\n"));
  }
  Sample out;
  EXPECT_EQ(TakeHostSettings(root_, 4096, &out), absl::OkStatus());
  const auto found = Found(out);
  EXPECT_EQ(found.at("host_transparent_huge_pages/always"), 1);
  EXPECT_EQ(found.at("host_numa_memory_total_bytes/0"), 16 * 1024);
  EXPECT_EQ(found.at("host_numa_miss_bytes_total/0"), 2 * 4096);
  EXPECT_EQ(found.at("host_cpu_core_throttles_total"), 6);
  EXPECT_EQ(found.at("host_cpu_package_throttles_total"), 14) << "once a package";
}

TEST(MountsTest, WhatHoldsFilesOfItsOwnOnceADevice) {
  const auto mounts = ParseMounts(
      "overlay / overlay rw 0 0\n"
      "proc /proc proc rw 0 0\n"
      "/dev/sda1 /data ext4 rw 0 0\n"
      "/dev/sda1 /data/again ext4 rw 0 0\n"
      "tmpfs /dev/shm tmpfs rw 0 0\n"
      "tmpfs /run/user/0 tmpfs rw 0 0\n"
      "srv:/home /home\\040dir nfs4 rw 0 0\n"
      "/dev/sdb /var/lib/kubelet/pods/x/volume xfs rw 0 0\n"
      "/dev/sdc /bad\\012path xfs rw 0 0\n"
      "short\n");
  std::vector<std::string> paths;
  for (const Mount& mount : mounts) paths.push_back(mount.path);
  EXPECT_THAT(paths, ElementsAre("/data", "/dev/shm", "/home dir"));
  EXPECT_TRUE(IsNetworkFileSystem(mounts[2].type));
  EXPECT_FALSE(IsNetworkFileSystem(mounts[0].type));
}

TEST(MountsTest, NumberOfMountsIsBounded) {
  std::string text;
  for (size_t i = 0; i < kMaxMounts + 1; ++i) {
    absl::StrAppend(&text, "/dev/s", i, " /m", i, " ext4 rw 0 0\n");
  }
  EXPECT_EQ(ParseMounts(text).size(), kMaxMounts);
}

// As an NFS client of Linux 6.1 shows it, shortened.
TEST(MountsTest, MountstatsAddUpTheOperationsOfAMount) {
  Sample out;
  EXPECT_TRUE(
      ParseMountstats("device proc mounted on /proc with fstype proc\n"
                      "device srv:/x mounted on /mnt with fstype nfs4 statvers=1.1\n"
                      "\topts:\trw\n"
                      "\tbytes:\t1 2 3 4 5000 600 7 8\n"
                      "\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)\n"
                      "\txprt:\ttcp 0 1 2 3 4\n"
                      "\tper-op statistics\n"
                      "\t        NULL: 1 1 0 44 24 0 0 500 0\n"
                      "\t        READ: 10 12 1 100 200 3 4 1500 0\n"
                      "device srv:/y mounted on /other with fstype nfs4\n",
                      &out));
  const auto found = Found(out);
  EXPECT_EQ(found.at("host_nfs_read_bytes_total//mnt"), 5000);
  EXPECT_EQ(found.at("host_nfs_write_bytes_total//mnt"), 600);
  EXPECT_EQ(found.at("host_nfs_operations_total//mnt"), 11);
  EXPECT_EQ(found.at("host_nfs_retransmissions_total//mnt"), 2);
  EXPECT_EQ(found.at("host_nfs_major_timeouts_total//mnt"), 1);
  EXPECT_DOUBLE_EQ(found.at("host_nfs_operation_seconds_total//mnt"), 2);
  EXPECT_EQ(found.at("host_nfs_operations_total//other"), 0);
}

TEST_F(HostTreeTest, FillIsThatOfTheMountAndAMissingListIsAReason) {
  Sample out;
  AddFill({.path = root_, .type = "ext4"}, &out);
  const auto found = Found(out);
  EXPECT_GT(found.at("host_filesystem_size_bytes/" + root_), 0);
  EXPECT_LE(found.at("host_filesystem_available_bytes/" + root_),
            found.at("host_filesystem_size_bytes/" + root_));
  Sample none;
  EXPECT_EQ(TakeLocalFill(root_, &none).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(TakeNetworkFileSystems(root_, &none).code(), absl::StatusCode::kUnavailable);
}

TEST(ProcessStatTest, NameMayHoldAnything) {
  const auto stat = ParseProcessStat(
      "42 (a) D (b) R 1 42 42 0 -1 4194304 100 0 7 0 150 50 0 0 20 0 9 0 123456 1000000 300 "
      "18446744073709551615 1 1\n");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->state, 'R');
  EXPECT_EQ(stat->major_faults, 7);
  EXPECT_EQ(stat->user_ticks, 150);
  EXPECT_EQ(stat->system_ticks, 50);
  EXPECT_EQ(stat->threads, 9);
  EXPECT_EQ(stat->start_ticks, 123456);
  EXPECT_EQ(stat->resident_pages, 300);
  for (const char* text : {"", ")", "1 (a) R 1 2", "1 (a R 1"}) {
    EXPECT_FALSE(ParseProcessStat(text)) << text;
  }
}

TEST_F(HostTreeTest, SampledSourceFilesRowsAndItsReason) {
  static constexpr Metric kOne = {"one", v1::METRIC_TYPE_GAUGE, "1", "One.", "label"};
  std::vector<std::string> labels = {"a", "b"};
  absl::Status answer;
  SampledSource source({.name = "s", .job = "hosts", .host = "h", .interval = absl::Seconds(10)},
                       [&](Sample* out) {
                         for (const std::string& label : labels) out->Add(kOne, label, 1);
                         return answer;
                       });
  RecordingSink sink;
  EXPECT_EQ(source.Poll(absl::FromUnixSeconds(1003), &sink), absl::FromUnixSeconds(1010));
  EXPECT_EQ(sink.samples.size(), 2);
  labels = {"b"};
  answer = absl::UnavailableError("half of it");
  source.Poll(absl::FromUnixSeconds(1010), &sink);
  ASSERT_EQ(sink.samples.size(), 4);
  EXPECT_EQ(sink.samples[2].label, "label=a");
  EXPECT_EQ(sink.samples[2].bits, kStale);
  EXPECT_EQ(sink.samples[3].value(), 1);
  EXPECT_EQ(source.status(), answer);
}

class ProcessSourceTest : public HostTreeTest {
 protected:
  void SetUp() override {
    HostTreeTest::SetUp();
    options_ = {.job = "hosts",
                .host = "h",
                .rings = root_ + "/rings",
                .interval = absl::Seconds(10),
                .log = testing::LogTo(&log_)};
    fs::create_directories(options_.rings);
  }
  // A ring of this very process.
  client::Recorder Train(uint32_t task) const {
    return client::Recorder::Open({.directory = options_.rings,
                                   .job = "train",
                                   .task = task,
                                   .attempt = 1,
                                   .ring_bytes = 256 * 1024});
  }
  void Poll() {
    sink_.samples.clear();
    if (source_ == nullptr) source_ = std::make_unique<ProcessSource>(options_);
    now_ += absl::Seconds(10);
    source_->Poll(now_, &sink_);
  }
  const testing::StoredSample* Find(absl::string_view metric) const {
    for (const auto& sample : sink_.samples) {
      if (sample.metric == metric) return &sample;
    }
    return nullptr;
  }

  ProcessOptions options_;
  std::vector<std::string> log_;
  std::unique_ptr<ProcessSource> source_;
  RecordingSink sink_;
  absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
};

TEST_F(ProcessSourceTest, TrainerIsFiledWithTheHostAndNamesItsJobAndTask) {
  const client::Recorder recorder = Train(3);
  Poll();
  const auto* const memory = Find("host_process_resident_memory_bytes");
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(memory->job, "hosts") << "a job whose trainers hang falls silent";
  EXPECT_EQ(memory->label, "of_job=trainof_task=3");
  EXPECT_EQ(memory->host, "h");
  EXPECT_GT(memory->value(), 100'000);
  ASSERT_NE(Find("host_process_threads"), nullptr);
  EXPECT_GE(Find("host_process_threads")->value(), 1);
  EXPECT_GE(Find("host_process_open_files")->value(), 3);
  EXPECT_EQ(Find("host_process_state_blocked")->value(), 0);
}

TEST_F(ProcessSourceTest, TrainerWhoseRingIsGoneEndsWithStaleMarkers) {
  {
    const client::Recorder recorder = Train(0);
    Poll();
    ASSERT_NE(Find("host_process_threads"), nullptr);
  }
  for (const auto& entry : fs::directory_iterator(options_.rings)) fs::remove(entry.path());
  Poll();
  ASSERT_NE(Find("host_process_threads"), nullptr);
  EXPECT_EQ(Find("host_process_threads")->bits, kStale);
  Poll();
  EXPECT_THAT(sink_.samples, IsEmpty());
}

TEST_F(ProcessSourceTest, NumberOfAnotherProcessIsNotTaken) {
  const client::Recorder recorder = Train(0);
  options_.proc = root_ + "/proc";
  WriteFile(absl::StrCat(options_.proc, "/", ::getpid(), "/stat"),
            "1 (other) S 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 5 1 1 1\n");
  Poll();
  EXPECT_THAT(sink_.samples, IsEmpty());
}

TEST_F(ProcessSourceTest, TrainersBeyondTheLimitAreSaid) {
  options_.max_processes = 1;
  const client::Recorder one = Train(0);
  Poll();
  EXPECT_THAT(log_, IsEmpty());
  const client::Recorder two = Train(1);
  Poll();
  ASSERT_EQ(log_.size(), 1);
  EXPECT_THAT(log_[0], ::testing::HasSubstr("sources.host.max_processes"));
}

}  // namespace
}  // namespace tacho::agent
