#include "tests/agent/sources/gpu/gpu_test_machine.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "tests/support/tfevents_writer.h"

namespace tacho::agent::testing {

GpuTestMachine::GpuTestMachine() {
  path_ = (std::filesystem::path(::testing::TempDir()) /
           absl::StrCat("nvml_", ::testing::UnitTest::GetInstance()->current_test_info()->name(),
                        "_", ::getpid()))
              .string();
  ::setenv("TACHO_FAKE_NVML", path_.c_str(), 1);
  Write();
}

GpuTestMachine::~GpuTestMachine() {
  // Calls that hang go on and end.
  gpus_.clear();
  lines_.clear();
  Write();
  std::filesystem::remove(path_);
}

void GpuTestMachine::AddGpu(int number) {
  auto& gpu = gpus_[number];
  gpu = {{"pci", absl::StrCat(59 + number)},
         {"uuid", absl::StrCat("GPU-", number)},
         {"name", "NVIDIA H100 80GB HBM3"},
         {"serial", absl::StrCat("16500", number)},
         {"minor", absl::StrCat(number)},
         {"GetUtilizationRates", "75 40"},
         {"GetMemoryInfo", "85899345920 64424509440 21474836480"},
         {"GetMemoryInfo_v2", "85899345920 536870912 64424509440 20937965568"},
         {"GetTemperature", "61"},
         {"GetTemperatureV", "62"},
         {"GetPowerUsage", "650500"},
         {"GetEnforcedPowerLimit", "700000"},
         {"GetClockInfo.1", "1830"},
         {"GetClockInfo.2", "2619"},
         {"GetMaxClockInfo.1", "1980"},
         {"GetCurrentClocksEventReasons", "4"},
         {"GetCurrentClocksThrottleReasons", "32"},
         {"GetPerformanceState", "0"},
         {"GetMigMode", "0"},
         {"GetSupportedEventTypes", "8"},
         {"GetNvLinkState.0", "1"},
         {"GetNvLinkState.1", "0"},
         {"field.83", "3 123456789"},
         {"field.3", "3 7"},
         {"field.4", "3 1"},
         {"field.82", "1 70"},
         {"field.91", "1 2"},
         {"field.94", "1 5"},
         {"field.74", "3 2500000000"},
         {"field.75", "4 500000000"},
         {"field.138.all", "3 1024"},
         {"field.139.all", "3 2048"},
         {"field.142", "1 1"},
         {"field.143", "1 2"},
         {"field.144", "6 1"},
         {"field.145", "5 0"},
         {"field.161", "3 10"},
         {"field.161.1", "3 1"},
         {"field.162", "3 2"},
         {"field.163.1", "3 3"},
         {"field.230", "1 0"}};
}

void GpuTestMachine::Write() const {
  std::string text;
  for (const auto& [number, values] : gpus_) {
    for (const auto& [key, value] : values) {
      absl::StrAppend(&text, number, " ", key, " ", value, "\n");
    }
  }
  for (const std::string& line : lines_) absl::StrAppend(&text, line, "\n");
  // Renamed, lest a call read half of it.
  tacho::testing::WriteFile(path_ + ".new", text);
  std::rename((path_ + ".new").c_str(), path_.c_str());
}

std::string GpuTestMachine::Library() { return TACHO_FAKE_NVML; }
std::string GpuTestMachine::OldLibrary() { return TACHO_FAKE_NVML_OLD; }

}  // namespace tacho::agent::testing
