# Tests of the ring: its writer and its reader.
tacho_test(ring_crc32c_test LABEL unit SOURCES ../proto/base/crc32c_test.cc DEPS tacho::client)
tacho_test(ring_text_test LABEL unit SOURCES ring/ring_text_test.cc DEPS tacho::client)
tacho_test(recorder_test LABEL unit SOURCES recorder_test.cc ring/ring_test_support.h
  DEPS tacho::client tacho::ring_reader)
tacho_test(ring_reader_test LABEL unit SOURCES ring/ring_reader_test.cc ring/ring_test_support.h
  DEPS tacho::client tacho::ring_reader)
tacho_test(ring_damage_test LABEL unit SOURCES ring/ring_damage_test.cc ring/ring_test_support.h
  DEPS tacho::client tacho::ring_reader TIMEOUT 300)
tacho_test(ring_concurrency_test LABEL unit SOURCES ring/ring_concurrency_test.cc ring/ring_test_support.h
  DEPS tacho::client tacho::ring_reader)
tacho_test(ring_cost_test LABEL unit SOURCES ring/ring_cost_test.cc ring/ring_test_support.h
  DEPS tacho::client tacho::ring_reader)
tacho_test(ring_format_test LABEL unit SOURCES ring/ring_format_test.cc ring/ring_test_support.h
  DEPS tacho::client tacho::ring_reader)
tacho_test(environment_identity_test LABEL unit SOURCES environment_identity_test.cc
  DEPS tacho::client)
tacho_test(recorder_step_test LABEL unit SOURCES recorder_step_test.cc ring/ring_test_support.h
  DEPS tacho::client tacho::ring_reader)
tacho_test(recorder_histogram_test LABEL unit SOURCES recorder_histogram_test.cc ring/ring_test_support.h
  DEPS tacho::client tacho::ring_reader tacho::histogram_layout)
tacho_test(recorder_exit_test LABEL unit SOURCES recorder_exit_test.cc ring/ring_test_support.h
  DEPS tacho::client tacho::ring_reader)
tacho_test(direct_queue_test LABEL unit SOURCES direct/direct_queue_test.cc DEPS tacho::client_direct
  absl::synchronization)
tacho_test(direct_recorder_test LABEL unit SOURCES direct/direct_recorder_test.cc
  DEPS tacho::client_direct tacho::proto absl::synchronization)
tacho_test(recorder_trouble_test LABEL unit SOURCES recorder_trouble_test.cc ring/ring_test_support.h
  DEPS tacho::client tacho::ring_reader)
tacho_test(readme_test LABEL unit SOURCES readme_test.cc
  DEPS tacho::client_direct tacho::ring_reader tacho::proto absl::synchronization)
target_compile_definitions(readme_test PRIVATE TACHO_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
