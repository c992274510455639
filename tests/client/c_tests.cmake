# Tests of the C ABI and of the shared library.
tacho_test(c_abi_test LABEL unit SOURCES c/c_abi_test.cc ring/ring_test_support.h
  DEPS tacho::c tacho::client tacho::ring_reader)

# A sanitized library cannot be loaded by a program that knows nothing of the sanitizer.
if(NOT TACHO_SANITIZER)
  add_test(NAME shared_library COMMAND /usr/bin/python3 -B
    ${CMAKE_CURRENT_SOURCE_DIR}/c/test_shared_library.py)
  set_tests_properties(shared_library PROPERTIES LABELS unit TIMEOUT 60
    ENVIRONMENT "TACHO_LIBRARY=$<TARGET_FILE:tacho_shared>;CC=${CMAKE_C_COMPILER};CXX=${CMAKE_CXX_COMPILER}")
endif()
