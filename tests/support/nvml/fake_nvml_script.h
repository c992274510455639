// What the fake NVML answers, read from the file that the environment variable TACHO_FAKE_NVML
// names. The file is read again at each call, so that a test changes the machine by writing it
// anew.
//
// Lines, in any order; GPU is a number from 0:
//   result N                    what nvmlInit answers
//   driver TEXT                 version of the driver
//   GPU KEY VALUE...            the GPU exists; keys:
//     pci BUS | uuid TEXT | name TEXT | minor N
//     FUNCTION VALUE...         what the function without "nvmlDevice" gives: "GetPowerUsage
//     250000" field.ID.SCOPE TYPE VALUE what nvmlDeviceGetFieldValues gives; SCOPE may be left out
//     for 0 gpm.ID VALUE              what nvmlGpmMetricsGet gives pid N                     a
//     process that computes fail.FUNCTION RESULT      the function answers this; fail.all: every
//     function of the GPU hang                      every function of the GPU waits until the line
//     is gone
//   count N                     of nvmlDeviceGetCount, if it is not the number of GPUs
//   event SEQUENCE GPU TYPE DATA   nvmlEventSetWait_v2 gives it once; sequences from 1
// Questions that the file does not answer get NVML_ERROR_NOT_SUPPORTED.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tacho::fake_nvml {

struct Gpu {
  std::map<std::string, std::string> values;  // By key; the rest of the line.
  std::vector<uint32_t> pids;
};

struct Event {
  uint64_t sequence = 0;
  uint32_t gpu = 0;
  uint64_t type = 0;
  uint64_t data = 0;
};

struct Script {
  int result = 0;
  std::string driver = "550.54.15";
  std::map<uint32_t, Gpu> gpus;
  int64_t count = -1;
  std::vector<Event> events;
};

Script ReadScript();

}  // namespace tacho::fake_nvml
