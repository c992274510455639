# Conditions that are read off training curves, and the names of metrics.
tacho_test(signal_names_test LABEL unit
  SOURCES signal_names_test.cc
  DEPS tacho::condition_data)
target_compile_definitions(signal_names_test PRIVATE TACHO_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
tacho_test(condition_curves_test LABEL unit
  SOURCES curve_test.cc diverged_test.cc gradients_test.cc loss_spike_test.cc overfitting_test.cc
          plateau_test.cc replica_disagreement_test.cc curve_windows.h
  DEPS tacho::condition_curves)
tacho_test(detectors_curves_test LABEL unit
  SOURCES detectors_curves_test.cc curve_windows.h
  DEPS tacho::detectors_curves tacho::yaml_config)
