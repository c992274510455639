/* The same in C: tacho-ending-train-in-c JOB STEPS PAUSE_US. */
#define _DEFAULT_SOURCE
#include <stdlib.h>
#include <unistd.h>

#include "tacho.h"

int main(int argc, char** argv) {
  tacho_options options = TACHO_OPTIONS_INIT;
  tacho_recorder* recorder;
  tacho_metric loss;
  long step;
  if (argc != 4) return 2;
  options.job = argv[1];
  recorder = tacho_open(&options);
  if (!tacho_recording(recorder)) return 1;
  loss = tacho_gauge(recorder, "loss", "1", "Training loss.");
  for (step = 0; step < strtol(argv[2], NULL, 10); ++step) {
    tacho_set(recorder, loss, 1.0 / (double)(step + 1));
    tacho_commit_step(recorder, step);
    usleep((useconds_t)strtol(argv[3], NULL, 10));
  }
  tacho_close(recorder);
  return 0;
}
