# Conditions of chips and hosts.
tacho_test(conditions_hardware_test LABEL unit
  SOURCES conditions_hardware_config_test.cc conditions_hardware_errors_test.cc
          conditions_memory_test.cc conditions_throttled_test.cc robust_trend_test.cc
  DEPS tacho::detectors_hardware tacho::hardware_scenarios tacho::yaml_config)
