// Records rows straight to a collector: tacho-direct-train COLLECTOR ROWS PAUSE_US [CA TOKEN_FILE].
// Row i has the step i and the value i / 4. TACHO_FLUSH_S: how long the end waits, 60 by default.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "client/direct/direct_recorder.h"

int main(int argc, char** argv) {
  if (argc != 4 && argc != 6) return 2;
  const long rows = std::strtol(argv[2], nullptr, 10);
  const std::chrono::microseconds pause(std::strtol(argv[3], nullptr, 10));
  const bool secured = argc == 6;
  const char* flush = std::getenv("TACHO_FLUSH_S");
  tacho::client::Recorder recorder =
      tacho::client::OpenDirect({.recorder = {.job = "direct", .task = 0},
                                 .collector = argv[1],
                                 .security = {.tls = secured,
                                              .ca = secured ? argv[4] : "",
                                              .token_file = secured ? argv[5] : ""},
                                 .flush_timeout = absl::Seconds(flush ? std::atoi(flush) : 60)});
  if (!recorder.recording()) return 1;
  recorder.SetAttribute("planned_steps", rows);
  const auto loss = recorder.Gauge("loss", "1", "Training loss.");
  const auto norms =
      recorder.Histogram("norms", "1", "Norms.", {.first = 1, .factor = 4, .count = 4});
  for (long row = 0; row < rows; ++row) {
    recorder.Set(loss, static_cast<double>(row) / 4);
    recorder.Observe(norms, static_cast<double>(row % 100));
    recorder.CommitStep(row);
    std::this_thread::sleep_for(pause);
  }
  recorder.Event("ended", "All rows are recorded.");
  return 0;
}
