#include "agent/sources/host/host_parsers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"

namespace tacho::agent {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Pair;
using ::testing::SizeIs;

// By "name" or "name{label}".
std::map<std::string, double> Values(const Sample& sample) {
  std::map<std::string, double> out;
  for (const Sample::Entry& entry : sample.entries()) {
    out[entry.labels.empty() ? entry.metric->name
                             : absl::StrCat(entry.metric->name, "{", entry.labels[0].second, "}")] =
        entry.value;
  }
  return out;
}

std::map<std::string, double> Parse(bool (*parse)(absl::string_view, Sample*),
                                    absl::string_view text, bool want = true) {
  Sample sample;
  EXPECT_EQ(parse(text, &sample), want);
  return Values(sample);
}

uint64_t Bits(double value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// Captured on a virtual machine with two CPUs, Linux 6; the line intr cut short.
constexpr char kStat[] =
    "cpu  49091 2070 16769 400031 1046 0 70 688 0 0\n"
    "cpu0 23315 1143 4752 205214 69 0 9 340 0 0\n"
    "cpu1 25775 926 12017 194816 977 0 60 348 0 0\n"
    "intr 7125341 0 9 0 0\n"
    "ctxt 9714362\n"
    "btime 1795224985\n"
    "processes 14297\n"
    "procs_running 5\n"
    "procs_blocked 1\n"
    "softirq 100 1 2 3\n";

TEST(HostParsersTest, StatGivesSecondsAndCounts) {
  Sample sample;
  CpuTicks ticks;
  ASSERT_TRUE(ParseProcStat(kStat, 100, &sample, &ticks));
  const auto values = Values(sample);
  EXPECT_DOUBLE_EQ(values.at("host_cpu_user_seconds_total"), 490.91);
  EXPECT_DOUBLE_EQ(values.at("host_cpu_idle_seconds_total"), 4000.31);
  EXPECT_DOUBLE_EQ(values.at("host_cpu_steal_seconds_total"), 6.88);
  EXPECT_EQ(values.at("host_cpus"), 2);
  EXPECT_EQ(values.at("host_context_switches_total"), 9714362);
  EXPECT_EQ(values.at("host_interrupts_total"), 7125341);
  EXPECT_EQ(values.at("host_forks_total"), 14297);
  EXPECT_EQ(values.at("host_processes_running"), 5);
  EXPECT_EQ(values.at("host_processes_blocked"), 1);
  EXPECT_EQ(values.at("host_boot_time_seconds"), 1795224985);
  EXPECT_EQ(ticks.total, 49091 + 2070 + 16769 + 400031 + 1046 + 70 + 688);
  EXPECT_EQ(ticks.busy, 49091 + 2070 + 16769 + 70 + 688);
}

TEST(HostParsersTest, StatOfAnOldKernelGivesWhatItHas) {
  Sample sample;
  CpuTicks ticks;
  ASSERT_TRUE(ParseProcStat("cpu 1 2 3 4\n", 100, &sample, &ticks));
  EXPECT_THAT(Values(sample), SizeIs(4));
  sample = {};
  EXPECT_FALSE(ParseProcStat("cpu 1 2 3\n", 100, &sample, &ticks));
  EXPECT_FALSE(ParseProcStat("", 100, &sample, &ticks));
}

TEST(HostParsersTest, UtilizationIsTheBusyShareBetweenTwoLooks) {
  Sample sample;
  AddCpuUtilization({100, 1000}, {175, 1100}, &sample);
  EXPECT_DOUBLE_EQ(Values(sample).at("host_cpu_utilization_ratio"), 0.75);
}

TEST(HostParsersTest, UtilizationThatCannotBeToldIsTheStaleMarkerBitForBit) {
  for (const auto& [before, after] : {std::pair<CpuTicks, CpuTicks>{{0, 0}, {5, 10}},
                                      {{5, 10}, {5, 10}},
                                      {{5, 10}, {4, 20}},
                                      {{5, 10}, {1, 2}}}) {
    Sample sample;
    AddCpuUtilization(before, after, &sample);
    ASSERT_THAT(sample.entries(), SizeIs(1));
    EXPECT_EQ(Bits(sample.entries()[0].value), 0x7ff0000000000002u);
  }
}

TEST(HostParsersTest, LoadavgAndUptime) {
  const auto load = Parse(ParseLoadavg, "4.28 2.47 1.05 5/116 14297\n");
  EXPECT_EQ(load.at("host_load1"), 4.28);
  EXPECT_EQ(load.at("host_load5"), 2.47);
  EXPECT_EQ(load.at("host_load15"), 1.05);
  EXPECT_EQ(load.at("host_threads"), 116);
  EXPECT_EQ(Parse(ParseUptime, "2354.81 4000.31\n").at("host_uptime_seconds"), 2354.81);
  Parse(ParseLoadavg, "nan inf 1", false);
  Parse(ParseLoadavg, "", false);
  Parse(ParseUptime, "soon", false);
}

TEST(HostParsersTest, MeminfoGivesBytes) {
  const auto values = Parse(ParseMeminfo,
                            "MemTotal:       24684084 kB\n"
                            "MemFree:        21314808 kB\n"
                            "MemAvailable:   21696108 kB\n"
                            "HugePages_Total:       0\n"
                            "Dirty:               bad kB\n"
                            "SwapTotal:\n");
  EXPECT_EQ(values.at("host_memory_total_bytes"), 24684084.0 * 1024);
  EXPECT_EQ(values.at("host_memory_available_bytes"), 21696108.0 * 1024);
  EXPECT_THAT(values, SizeIs(4));
  Parse(ParseMeminfo, "nothing we know\n", false);
}

TEST(HostParsersTest, VmstatCountsPagesAsBytes) {
  Sample sample;
  ASSERT_TRUE(
      ParseVmstat("nr_free_pages 5\npswpin 3\npswpout 4\npgfault 100\npgmajfault 7\noom_kill 1\n",
                  4096, &sample));
  const auto values = Values(sample);
  EXPECT_EQ(values.at("host_swap_in_bytes_total"), 3 * 4096);
  EXPECT_EQ(values.at("host_swap_out_bytes_total"), 4 * 4096);
  EXPECT_EQ(values.at("host_memory_major_page_faults_total"), 7);
  EXPECT_EQ(values.at("host_memory_oom_kills_total"), 1);
}

TEST(HostParsersTest, NetDevLeavesOutWhatStandsForOthers) {
  const auto values =
      Parse(ParseNetDev,
            "Inter-|   Receive                                                |  Transmit\n"
            " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets "
            "errs drop "
            "fifo colls carrier compressed\n"
            "    lo:    3267      29    0    0    0     0          0         0     3267      29    "
            "0    0    "
            "0     0       0          0\n"
            "veth1234: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
            "  eth0:41799922     991    1    2    0     0          0         0    42850     516    "
            "3    4    0 "
            "    0       0          0\n"
            "  eth1: 1 2 3\n"
            "eth0:1: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n");
  EXPECT_EQ(values.at("host_network_receive_bytes_total{eth0}"), 41799922);
  EXPECT_EQ(values.at("host_network_receive_errors_total{eth0}"), 1);
  EXPECT_EQ(values.at("host_network_transmit_bytes_total{eth0}"), 42850);
  EXPECT_EQ(values.at("host_network_transmit_drops_total{eth0}"), 4);
  EXPECT_THAT(values, Contains(Key("host_network_receive_bytes_total{eth0:1}")));
  EXPECT_THAT(values, SizeIs(16));
  Parse(ParseNetDev, "no colon\n", false);
}

TEST(HostParsersTest, MachineWithOnlyLoopbackIsUnderstoodAndHasNoSeries) {
  EXPECT_THAT(Parse(ParseNetDev, "lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"), IsEmpty());
}

TEST(HostParsersTest, DiskstatsGivesWholeDisks) {
  const std::string numbers = " 101358 29772 6932154 75644 15021 20897 4147960 12539 2 22412 89028";
  std::string text;
  for (const char* disk : {"vda", "vda1", "sda", "sdb12", "nvme0n1", "nvme0n1p2", "mmcblk0",
                           "mmcblk0p1", "loop0", "zram0", "dm-3", "md0", "sr0"}) {
    text += absl::StrCat(" 254       0 ", disk, numbers, " 5839 44 2076008 784 1278 59\n");
  }
  const auto values = Parse(ParseDiskstats, text);
  EXPECT_EQ(values.at("host_disk_read_bytes_total{vda}"), 6932154.0 * 512);
  EXPECT_EQ(values.at("host_disk_write_bytes_total{vda}"), 4147960.0 * 512);
  EXPECT_DOUBLE_EQ(values.at("host_disk_read_seconds_total{vda}"), 75.644);
  EXPECT_DOUBLE_EQ(values.at("host_disk_busy_seconds_total{vda}"), 22.412);
  EXPECT_EQ(values.at("host_disk_requests_in_progress{vda}"), 2);
  for (const char* disk : {"vda", "sda", "nvme0n1", "mmcblk0", "md0"}) {
    EXPECT_THAT(values, Contains(Key(absl::StrCat("host_disk_reads_total{", disk, "}"))));
  }
  EXPECT_THAT(values, SizeIs(5 * 8));
}

TEST(HostParsersTest, PressureGivesSeconds) {
  constexpr char kText[] =
      "some avg10=69.04 avg60=75.47 avg300=39.60 total=171510025\n"
      "full avg10=0.00 avg60=0.00 avg300=0.00 total=472094\n";
  EXPECT_DOUBLE_EQ(Parse(ParsePressureCpu, kText).at("host_pressure_cpu_waiting_seconds_total"),
                   171.510025);
  const auto io = Parse(ParsePressureIo, kText);
  EXPECT_DOUBLE_EQ(io.at("host_pressure_io_stalled_seconds_total"), 0.472094);
  EXPECT_THAT(Parse(ParsePressureMemory, kText), SizeIs(2));
  Parse(ParsePressureCpu, "some avg10=1\n", false);
}

TEST(HostParsersTest, ControlGroup) {
  const auto cpu =
      Parse(ParseCgroupCpuStat,
            "usage_usec 5000000\nuser_usec 3000000\nsystem_usec 2000000\nnr_periods 10\n"
            "nr_throttled 2\nthrottled_usec 1500000\n");
  EXPECT_DOUBLE_EQ(cpu.at("host_cgroup_cpu_usage_seconds_total"), 5);
  EXPECT_DOUBLE_EQ(cpu.at("host_cgroup_cpu_throttled_seconds_total"), 1.5);
  EXPECT_EQ(Parse(ParseCgroupMemoryCurrent, "12345\n").at("host_cgroup_memory_current_bytes"),
            12345);
  EXPECT_EQ(Parse(ParseCgroupMemoryMax, "1073741824\n").at("host_cgroup_memory_max_bytes"),
            1073741824);
  EXPECT_THAT(Parse(ParseCgroupMemoryMax, "max\n"), IsEmpty());
  EXPECT_EQ(Parse(ParseCgroupMemoryEvents, "low 0\nhigh 3\nmax 4\noom 1\noom_kill 2\n")
                .at("host_cgroup_memory_oom_kills_total"),
            2);
}

TEST(HostParsersTest, SampleKeepsTheFirstOfTwoAndEndsAtItsLimit) {
  static constexpr Metric kMetric = {"m", v1::METRIC_TYPE_GAUGE, "1", "", "device"};
  Sample sample;
  sample.Add(kMetric, "a", 1);
  sample.Add(kMetric, "a", 2);
  EXPECT_THAT(Values(sample), Contains(Pair("m{a}", 1)));
  for (size_t i = 0; i < Sample::kMaxSeries; ++i) sample.Add(kMetric, absl::StrCat(i), 0);
  EXPECT_THAT(sample.entries(), SizeIs(Sample::kMaxSeries));
}

}  // namespace
}  // namespace tacho::agent
