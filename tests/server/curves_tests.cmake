# Conditions that are read off training curves, and the names of metrics.
tacho_test(signal_names_test LABEL unit
  SOURCES conditions/signal_names_test.cc
  DEPS tacho::condition_data)
target_compile_definitions(signal_names_test PRIVATE TACHO_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
tacho_test(condition_curves_test LABEL unit
  SOURCES conditions/measures/curve_test.cc conditions/detectors/diverged_test.cc conditions/detectors/gradients_test.cc conditions/detectors/loss_spike_test.cc conditions/detectors/overfitting_test.cc
          conditions/detectors/plateau_test.cc conditions/detectors/replica_disagreement_test.cc conditions/detectors/curve_windows.h
  DEPS tacho::condition_curves)
tacho_test(detectors_curves_test LABEL unit
  SOURCES conditions/detectors_curves_test.cc conditions/detectors/curve_windows.h
  DEPS tacho::detectors_curves tacho::yaml_config)
