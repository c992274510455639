// Records three steps into a ring below the directory given, and prints the ring's path.

#include <cstdio>

#include "client/recorder.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  auto recorder = tacho::client::Recorder::Open({.directory = argv[1], .job = "package"});
  const auto loss = recorder.Gauge("loss", "1", "Training loss.");
  for (int64_t step = 0; step < 3; ++step) {
    recorder.Set(loss, 1.0 / static_cast<double>(step + 1));
    recorder.CommitStep(step);
  }
  if (!recorder.recording() || recorder.refused() != 0) {
    std::fprintf(stderr, "not recorded: %s\n", recorder.error().c_str());
    return 1;
  }
  std::puts(recorder.path().c_str());
  return 0;
}
