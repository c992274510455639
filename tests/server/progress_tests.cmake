# Conditions of a job's progress, over a fleet that is made up.
tacho_test(synthetic_window_test LABEL unit
  SOURCES conditions/synthetic_window_test.cc
  DEPS tacho::synthetic_window)
tacho_test(progress_detectors_test LABEL unit
  SOURCES conditions/measures/job_pace_test.cc conditions/measures/job_roster_test.cc conditions/detectors/stalled_test.cc conditions/detectors/straggling_test.cc
  DEPS tacho::synthetic_window tacho::condition_progress)
tacho_test(progress_table_test LABEL unit
  SOURCES conditions/progress_scenarios_test.cc conditions/settings_progress_test.cc
  DEPS tacho::synthetic_window tacho::detectors_progress tacho::yaml_config)
