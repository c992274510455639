#include "agent/sources/gpu/gpu_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/agent/sources/gpu/gpu_test_machine.h"

namespace tacho::agent {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Optional;
using ::testing::SizeIs;

const absl::Time kStart = absl::FromUnixSeconds(1000);

class GpuReaderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    machine_.AddGpu(0);
    machine_.Write();
  }

  void Open(const std::string& path, GpuReaderOptions options = {}) {
    auto library = NvmlLibrary::Load(path);
    ASSERT_TRUE(library.ok()) << library.status();
    library_ = *library;
    ASSERT_EQ(library_->calls().device_by_index(0, &device_), nvml::kSuccess);
    reader_ = std::make_unique<GpuReader>(library_, device_, options);
  }

  GpuReading Read(double seconds = 0) { return reader_->Read(kStart + absl::Seconds(seconds)); }

  testing::GpuTestMachine machine_;
  std::shared_ptr<const NvmlLibrary> library_;
  nvml::Device device_ = nullptr;
  std::unique_ptr<GpuReader> reader_;
};

TEST_F(GpuReaderTest, ReadsEveryKindOfCallAndOfFieldValue) {
  Open(testing::GpuTestMachine::Library());
  const GpuReading reading = Read();
  EXPECT_EQ(reading.trouble, 0);
  const auto value = [&](GpuValue which) { return reading.values.Get(which); };
  EXPECT_THAT(value(GpuValue::kUtilization), Optional(75));
  EXPECT_THAT(value(GpuValue::kMemoryReserved), Optional(536870912));
  EXPECT_THAT(value(GpuValue::kMemoryUsed), Optional(20937965568));
  EXPECT_THAT(value(GpuValue::kTemperature), Optional(62)) << "the newer call";
  EXPECT_THAT(value(GpuValue::kPower), Optional(650500));
  EXPECT_THAT(value(GpuValue::kClockReasons), Optional(4)) << "the newer call";
  EXPECT_THAT(value(GpuValue::kEnergy), Optional(123456789)) << "unsigned 64 bits";
  EXPECT_THAT(value(GpuValue::kViolationThermal), Optional(500000000)) << "signed 64 bits";
  EXPECT_THAT(value(GpuValue::kMemoryTemperature), Optional(70)) << "unsigned 32 bits";
  EXPECT_THAT(value(GpuValue::kRowRemapPending), Optional(1)) << "unsigned 16 bits";
  EXPECT_THAT(value(GpuValue::kRowRemapFailed), Optional(0)) << "signed 32 bits";
  EXPECT_THAT(value(GpuValue::kRowsRemapped), Optional(3));
  EXPECT_THAT(value(GpuValue::kLinkTransmitted), Optional(1024)) << "over all links";
  EXPECT_THAT(value(GpuValue::kLinksUp), Optional(1));
  EXPECT_THAT(value(GpuValue::kLinkErrors), Optional(16)) << "10 + 1 replays, 2, 3 of CRC";
}

TEST_F(GpuReaderTest, OldDriverIsReadByTheOlderNames) {
  machine_.Set(0, "GetTotalEccErrors.0.0", "11");
  machine_.Set(0, "GetTotalEccErrors.1.0", "12");
  machine_.Set(0, "GetPcieReplayCounter", "13");
  machine_.Write();
  Open(testing::GpuTestMachine::OldLibrary());
  const GpuReading reading = Read();
  EXPECT_EQ(reading.trouble, 0);
  EXPECT_THAT(reading.values.Get(GpuValue::kMemoryUsed), Optional(21474836480));
  EXPECT_THAT(reading.values.Get(GpuValue::kTemperature), Optional(61));
  EXPECT_THAT(reading.values.Get(GpuValue::kClockReasons), Optional(32));
  EXPECT_THAT(reading.values.Get(GpuValue::kEccCorrected), Optional(11));
  EXPECT_THAT(reading.values.Get(GpuValue::kEccUncorrected), Optional(12));
  EXPECT_THAT(reading.values.Get(GpuValue::kPcieReplays), Optional(13));
  EXPECT_EQ(reading.values.Get(GpuValue::kEnergy), std::nullopt);
  EXPECT_EQ(reading.values.Get(GpuValue::kTensorActive), std::nullopt);
  EXPECT_EQ(IdentifyGpu(*library_, device_, 0).pci, "00000000:3B:00.0");
}

TEST_F(GpuReaderTest, IdentifiesADevice) {
  Open(testing::GpuTestMachine::Library());
  const GpuIdentity gpu = IdentifyGpu(*library_, device_, 3);
  EXPECT_EQ(gpu.index, 3);
  EXPECT_THAT(gpu.minor, Optional(0));
  EXPECT_EQ(gpu.pci, "00000000:3B:00.0");
  EXPECT_EQ(gpu.uuid, "GPU-0");
  EXPECT_EQ(gpu.name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(gpu.serial, "165000");
}

TEST_F(GpuReaderTest, WhatIsNotSupportedIsNotAskedForAgain) {
  machine_.Set(0, "fail.GetPowerUsage", "3");
  machine_.Unset(0, "field.82");
  machine_.Write();
  Open(testing::GpuTestMachine::Library());
  const GpuReading first = Read();
  EXPECT_EQ(first.values.Get(GpuValue::kPower), std::nullopt);
  EXPECT_EQ(first.values.Get(GpuValue::kMemoryTemperature), std::nullopt);
  EXPECT_GE(first.not_supported, 2);
  machine_.Unset(0, "fail.GetPowerUsage");
  machine_.Set(0, "field.82", "1 70");
  machine_.Write();
  const GpuReading second = Read();
  EXPECT_EQ(second.values.Get(GpuValue::kPower), std::nullopt);
  EXPECT_EQ(second.values.Get(GpuValue::kMemoryTemperature), std::nullopt);
  EXPECT_EQ(second.not_supported, first.not_supported);
}

TEST_F(GpuReaderTest, WhatIsNotPermittedIsCountedAsThat) {
  machine_.Set(0, "fail.GetClockInfo.1", "4");
  machine_.Write();
  Open(testing::GpuTestMachine::Library());
  EXPECT_EQ(Read().no_permission, 1);
}

TEST_F(GpuReaderTest, FailureThatPassesLeavesOneValueOutOnce) {
  machine_.Set(0, "fail.GetPowerUsage", "999");
  machine_.Set(0, "fail.GetMemoryInfo_v2", "999");
  machine_.Write();
  Open(testing::GpuTestMachine::Library());
  const GpuReading failed = Read();
  EXPECT_EQ(failed.trouble, 0);
  EXPECT_EQ(failed.values.Get(GpuValue::kPower), std::nullopt);
  EXPECT_EQ(failed.values.Get(GpuValue::kMemoryUsed), std::nullopt)
      << "the older call counts other bytes as used";
  EXPECT_THAT(failed.values.Get(GpuValue::kUtilization), Optional(75));
  machine_.Unset(0, "fail.GetPowerUsage");
  machine_.Write();
  EXPECT_THAT(Read().values.Get(GpuValue::kPower), Optional(650500));
}

TEST_F(GpuReaderTest, LostGpuIsAskedNothingMore) {
  machine_.Set(0, "fail.GetPowerUsage", "15");
  machine_.Write();
  Open(testing::GpuTestMachine::Library());
  const GpuReading reading = Read();
  EXPECT_EQ(reading.trouble, nvml::kGpuIsLost);
  EXPECT_THAT(reading.values.Get(GpuValue::kUtilization), Optional(75)) << "read before";
  EXPECT_EQ(reading.values.Get(GpuValue::kEnergy), std::nullopt);
}

TEST_F(GpuReaderTest, ProcessesBeyondTheBufferAreReadWithALargerOne) {
  std::string lines;
  for (int pid = 100; pid < 140; ++pid) machine_.Add(absl::StrCat("0 pid ", pid));
  machine_.Write();
  Open(testing::GpuTestMachine::Library());
  const GpuReading reading = Read();
  ASSERT_THAT(reading.pids, SizeIs(40));
  EXPECT_EQ(reading.pids[39], 139);
  EXPECT_THAT(reading.values.Get(GpuValue::kProcesses), Optional(40));
}

TEST_F(GpuReaderTest, OlderLinkCountersCountWhereThoseOfLinksAreNotThere) {
  for (const char* key : {"field.161", "field.161.1", "field.162", "field.163.1"}) {
    machine_.Unset(0, key);
  }
  machine_.Set(0, "field.38", "3 1");
  machine_.Set(0, "field.52", "3 4");
  machine_.Write();
  Open(testing::GpuTestMachine::Library());
  EXPECT_THAT(Read().values.Get(GpuValue::kLinkErrors), Optional(5));
}

TEST_F(GpuReaderTest, LinkThatDoesNotTellDoesNotSilenceTheOthers) {
  Open(testing::GpuTestMachine::Library());
  Read();
  EXPECT_THAT(Read().values.Get(GpuValue::kLinkErrors), Optional(16)) << "as in the first look";
}

TEST_F(GpuReaderTest, TensorActivityNeedsTwoLooksAtLeast100MsApart) {
  machine_.Set(0, "GpmQueryDeviceSupport", "1");
  machine_.Set(0, "gpm.5", "37.5");
  machine_.Set(0, "gpm.20", "2");
  machine_.Set(0, "GpmSampleGet", "1");
  machine_.Write();
  Open(testing::GpuTestMachine::Library());
  EXPECT_EQ(Read(0).values.Get(GpuValue::kTensorActive), std::nullopt);
  EXPECT_EQ(Read(0.05).values.Get(GpuValue::kTensorActive), std::nullopt);
  const GpuReading reading = Read(0.2);
  EXPECT_THAT(reading.values.Get(GpuValue::kTensorActive), Optional(37.5));
  EXPECT_THAT(reading.values.Get(GpuValue::kPcieTransmit), Optional(2 * 1024 * 1024));
  EXPECT_EQ(reading.values.Get(GpuValue::kDramActive), std::nullopt) << "not told";
}

TEST_F(GpuReaderTest, MonitorsAreOffWithMigAndWhereTheyAreNotThere) {
  machine_.Set(0, "GpmQueryDeviceSupport", "1");
  machine_.Set(0, "gpm.5", "37.5");
  machine_.Set(0, "fail.GpmSampleGet", "3");
  machine_.Write();
  Open(testing::GpuTestMachine::Library());
  Read(0);
  EXPECT_EQ(Read(1).values.Get(GpuValue::kTensorActive), std::nullopt);
  machine_.Unset(0, "fail.GpmSampleGet");
  machine_.Set(0, "GpmQueryDeviceSupport", "0");
  machine_.Write();
  Open(testing::GpuTestMachine::Library());
  Read(0);
  EXPECT_EQ(Read(1).values.Get(GpuValue::kTensorActive), std::nullopt);
}

TEST_F(GpuReaderTest, PcieThroughputIsMeasuredOnRequestOnly) {
  machine_.Set(0, "GetPcieThroughput.0", "3");
  machine_.Set(0, "GetPcieThroughput.1", "4");
  machine_.Write();
  Open(testing::GpuTestMachine::Library());
  EXPECT_EQ(Read().values.Get(GpuValue::kPcieTransmit), std::nullopt);
  Open(testing::GpuTestMachine::Library(), {.gpm = true, .pcie_throughput = true});
  EXPECT_THAT(Read().values.Get(GpuValue::kPcieTransmit), Optional(3000));
  EXPECT_THAT(Read().values.Get(GpuValue::kPcieReceive), Optional(4000));
}

TEST(NvmlLibraryTest, SaysWhyItCannotBeLoaded) {
  EXPECT_EQ(NvmlLibrary::Load("/nowhere/libnvidia-ml.so.1").status().code(),
            absl::StatusCode::kNotFound);
  const absl::Status other = NvmlLibrary::Load("libm.so.6").status();
  EXPECT_EQ(other.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(other.message()), HasSubstr("sources.gpu.library"));
  testing::GpuTestMachine machine;
  machine.Add("result 9");
  machine.Write();
  const absl::Status failed = NvmlLibrary::Load(testing::GpuTestMachine::Library()).status();
  EXPECT_EQ(failed.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(failed.message()), HasSubstr("Driver Not Loaded (9)"));
}

}  // namespace
}  // namespace tacho::agent
