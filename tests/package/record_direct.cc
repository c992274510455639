// Records one step for a collector that is not there: it must say so, and neither crash nor hang.

#include "client/direct/direct_recorder.h"

int main() {
  // Port 1 is reserved and below those that anybody can listen on.
  auto recorder = tacho::client::OpenDirect({.recorder = {.job = "package"},
                                             .collector = "127.0.0.1:1",
                                             .flush_timeout = absl::Milliseconds(200)});
  recorder.Set(recorder.Gauge("loss", "1", "Training loss."), 0.5);
  recorder.CommitStep(0);
  return recorder.recording() && recorder.refused() == 0 ? 0 : 1;
}
