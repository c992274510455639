# Conditions of a job's progress, over a fleet that is made up.
tacho_test(synthetic_window_test LABEL unit
  SOURCES synthetic_window_test.cc
  DEPS tacho::synthetic_window)
tacho_test(progress_detectors_test LABEL unit
  SOURCES job_pace_test.cc job_roster_test.cc stalled_test.cc straggling_test.cc
  DEPS tacho::synthetic_window tacho::condition_progress)
tacho_test(progress_table_test LABEL unit
  SOURCES progress_scenarios_test.cc settings_progress_test.cc
  DEPS tacho::synthetic_window tacho::detectors_progress tacho::yaml_config)
