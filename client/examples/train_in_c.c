/* Fits a line to noisy points by gradient descent, and records every step.
 *
 *   cc -std=c99 train_in_c.c -ltacho -lm && TACHO_JOB=line ./a.out
 *
 * Prints the ring's path. Exits with 1 if nothing was recorded or learned. */
#include <math.h>
#include <stdio.h>
#include <tacho.h>

enum { kPoints = 64, kSteps = 200 };

/* y = 3 x - 1, with noise from a fixed sequence. */
static void make_points(double* x, double* y) {
  unsigned state = 1;
  int i;
  for (i = 0; i < kPoints; ++i) {
    state = state * 1103515245u + 12345u;
    x[i] = (double)i / kPoints;
    y[i] = 3.0 * x[i] - 1.0 + 0.01 * ((double)(state >> 16 & 1023u) / 512.0 - 1.0);
  }
}

/* The mean squared error before one step of gradient descent; adds up the gradient's norm. */
static double train_step(const double* x, const double* y, double* line, double* norm) {
  double loss = 0.0, slope = 0.0, offset = 0.0;
  int i;
  for (i = 0; i < kPoints; ++i) {
    const double error = line[0] * x[i] + line[1] - y[i];
    loss += error * error / kPoints;
    slope += 2.0 * error * x[i] / kPoints;
    offset += 2.0 * error / kPoints;
  }
  line[0] -= 0.5 * slope;
  line[1] -= 0.5 * offset;
  *norm = sqrt(slope * slope + offset * offset);
  return loss;
}

int main(void) {
  double x[kPoints], y[kPoints], line[2] = {0.0, 0.0}, loss = 0.0, norm = 0.0;
  int64_t step;
  tacho_recorder* recorder = tacho_open(NULL); /* The job is in TACHO_JOB. */
  const tacho_metric loss_metric = tacho_gauge(recorder, "loss", "1", "Mean squared error.");
  const tacho_metric norm_metric = tacho_gauge(recorder, "grad_norm", "1", "Of the gradient.");
  const tacho_metric examples = tacho_counter(recorder, "examples", "examples", "Trained on.");
  tacho_set_attribute(recorder, "model", "line");
  tacho_event(recorder, "attempt_started", "Fitting a line.", NULL, 0);
  make_points(x, y);
  for (step = 0; step < kSteps; ++step) {
    loss = train_step(x, y, line, &norm);
    tacho_set(recorder, loss_metric, loss);
    tacho_set(recorder, norm_metric, norm);
    tacho_add(recorder, examples, kPoints);
    tacho_commit_step(recorder, step);
  }
  {
    const tacho_field status = {"status", loss < 1e-2 ? "succeeded" : "failed"};
    tacho_event(recorder, "ended", "", &status, 1);
  }
  if (!tacho_recording(recorder) || tacho_refused(recorder) != 0) {
    fprintf(stderr, "not recorded: %s\n", tacho_error(recorder));
    return 1;
  }
  puts(tacho_path(recorder));
  tacho_close(recorder);
  return loss < 1e-2 ? 0 : 1;
}
