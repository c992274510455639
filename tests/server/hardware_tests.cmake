# Conditions of chips and hosts.
tacho_test(conditions_hardware_test LABEL unit
  SOURCES conditions/conditions_hardware_config_test.cc conditions/detectors/conditions_hardware_errors_test.cc
          conditions/detectors/conditions_memory_test.cc conditions/detectors/conditions_throttled_test.cc conditions/measures/robust_trend_test.cc
  DEPS tacho::detectors_hardware tacho::hardware_scenarios tacho::yaml_config)
