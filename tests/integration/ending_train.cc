// Trains as the README does, and says nothing of its end: tacho-ending-train JOB STEPS PAUSE_US
// [COLLECTOR]. Without a collector it records into a ring.
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <thread>

#include "client/direct/direct_recorder.h"
#include "client/recorder.h"

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int64_t steps = std::strtol(argv[2], nullptr, 10);
  const std::chrono::microseconds pause(std::strtol(argv[3], nullptr, 10));
  const tacho::client::RecorderOptions options = {.job = argv[1]};
  auto recorder = argc > 4 ? tacho::client::OpenDirect(
                                 {.recorder = options, .collector = argv[4], .host = "direct-host"})
                           : tacho::client::Recorder::Open(options);
  if (!recorder.recording()) return 1;
  const auto loss = recorder.Gauge("loss", "1", "Training loss.");
  for (int64_t n = 0; n < steps; ++n) {
    auto step = recorder.Step(n);
    recorder.Set(loss, 1.0 / static_cast<double>(n + 1));
    std::this_thread::sleep_for(pause);
  }
  return 0;
}
