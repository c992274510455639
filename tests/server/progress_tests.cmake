# Conditions of a job's progress, over a fleet that is made up.
tacho_test(synthetic_window_test LABEL unit
  SOURCES synthetic_window_test.cc
  DEPS tacho::synthetic_window)
