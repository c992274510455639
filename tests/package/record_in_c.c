/* Records one step into a ring below the directory given, and prints the ring's path. */
#include <stdio.h>
#include <tacho.h>

int main(int argc, char** argv) {
  tacho_options options = TACHO_OPTIONS_INIT;
  tacho_recorder* recorder;
  options.directory = argc == 2 ? argv[1] : NULL;
  options.job = "package_in_c";
  recorder = tacho_open(&options);
  tacho_set(recorder, tacho_gauge(recorder, "loss", "1", "Training loss."), 0.5);
  if (tacho_commit_step(recorder, 0) != TACHO_OK) {
    fprintf(stderr, "not recorded: %s\n", tacho_error(recorder));
    return 1;
  }
  puts(tacho_path(recorder));
  tacho_close(recorder);
  return 0;
}
