# Conditions that are read off training curves, and the names of metrics.
tacho_test(signal_names_test LABEL unit
  SOURCES signal_names_test.cc
  DEPS tacho::condition_data)
target_compile_definitions(signal_names_test PRIVATE TACHO_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
