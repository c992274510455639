# Run after a test program is linked: writes the CTest entries of its test suites.
#
# cmake -D BINARY=<program> -D LABEL=<label> -D TIMEOUT=<seconds> -D RESULTS=<folder> -D OUTPUT=<file>
#       -P tacho_list_suites.cmake
#
# A process for each TEST would cost more than most tests do: a program starts in a tenth of a second,
# with sanitizers in more. RESULTS/<name of the entry>.xml gets GoogleTest's report.
execute_process(COMMAND ${BINARY} --gtest_list_tests
  OUTPUT_VARIABLE listed RESULT_VARIABLE failed TIMEOUT 60)
if(failed)
  message(FATAL_ERROR "${BINARY} --gtest_list_tests failed (${failed}):\n${listed}")
endif()
string(REPLACE ";" "," listed "${listed}")
string(REPLACE "\n" ";" lines "${listed}")
get_filename_component(program ${BINARY} NAME)
set(entries "")
foreach(line IN LISTS lines)
  if(NOT line MATCHES "^([A-Za-z0-9_/]+)\\.( .*)?$")
    continue()  # A test of the suite above, or what the main function says.
  endif()
  set(suite ${CMAKE_MATCH_1})
  set(entry "${program}.${suite}")
  string(REPLACE "/" "_" report "${entry}")
  string(APPEND entries
    "add_test(\"${entry}\" \"${BINARY}\" \"--gtest_filter=${suite}.*\" \"--gtest_output=xml:${RESULTS}/${report}.xml\")\n"
    "set_tests_properties(\"${entry}\" PROPERTIES LABELS ${LABEL} TIMEOUT ${TIMEOUT})\n")
endforeach()
if(entries STREQUAL "")
  message(FATAL_ERROR "${BINARY} has no test")
endif()
file(WRITE ${OUTPUT} "${entries}")
