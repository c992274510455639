# Tests of the ring: its writer and its reader.
tacho_test(ring_crc32c_test LABEL unit SOURCES ring_crc32c_test.cc DEPS tacho::client)
tacho_test(ring_text_test LABEL unit SOURCES ring_text_test.cc DEPS tacho::client)
tacho_test(recorder_test LABEL unit SOURCES recorder_test.cc ring_test_support.h
  DEPS tacho::client tacho::ring_reader)
tacho_test(ring_reader_test LABEL unit SOURCES ring_reader_test.cc ring_test_support.h
  DEPS tacho::client tacho::ring_reader)
tacho_test(ring_damage_test LABEL unit SOURCES ring_damage_test.cc ring_test_support.h
  DEPS tacho::client tacho::ring_reader TIMEOUT 300)
tacho_test(ring_concurrency_test LABEL unit SOURCES ring_concurrency_test.cc ring_test_support.h
  DEPS tacho::client tacho::ring_reader)
tacho_test(ring_cost_test LABEL unit SOURCES ring_cost_test.cc ring_test_support.h
  DEPS tacho::client tacho::ring_reader)
tacho_test(ring_format_test LABEL unit SOURCES ring_format_test.cc ring_test_support.h
  DEPS tacho::client tacho::ring_reader)
