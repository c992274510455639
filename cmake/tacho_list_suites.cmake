# Run after a test program is linked: writes the CTest entries of its test suites.
#
# cmake -D BINARY=<program> -D LABEL=<label> -D TIMEOUT=<seconds> -D SPLIT=<suite,...>
#       -D RESULTS=<folder> -D OUTPUT=<file> -P tacho_list_suites.cmake
#
# A process for each TEST would cost more than most tests do: a program starts in a tenth of a second,
# with sanitizers in more. The suites of SPLIT have long tests: each of these has its own entry, with its
# own TIMEOUT. RESULTS/<name of the entry>.xml gets GoogleTest's report.
cmake_policy(VERSION 3.25)
execute_process(COMMAND ${BINARY} --gtest_list_tests
  OUTPUT_VARIABLE listed RESULT_VARIABLE failed TIMEOUT 60)
if(failed)
  message(FATAL_ERROR "${BINARY} --gtest_list_tests failed (${failed}):\n${listed}")
endif()
string(REPLACE ";" "," listed "${listed}")
string(REPLACE "\n" ";" lines "${listed}")
get_filename_component(program ${BINARY} NAME)
string(REPLACE "," ";" split "${SPLIT}")
set(entries "")

function(add_entry filter)
  string(REGEX REPLACE "\\.\\*$" "" name "${filter}")
  set(entry "${program}.${name}")
  string(REPLACE "/" "_" report "${entry}")
  string(APPEND entries
    "add_test(\"${entry}\" \"${BINARY}\" \"--gtest_filter=${filter}\" \"--gtest_output=xml:${RESULTS}/${report}.xml\")\n"
    "set_tests_properties(\"${entry}\" PROPERTIES LABELS ${LABEL} TIMEOUT ${TIMEOUT})\n")
  set(entries "${entries}" PARENT_SCOPE)
endfunction()

set(suite "")
foreach(line IN LISTS lines)
  if(line MATCHES "^([A-Za-z0-9_/]+)\\.( .*)?$")
    set(suite ${CMAKE_MATCH_1})
    if(NOT suite IN_LIST split)
      add_entry("${suite}.*")
    endif()
  elseif(suite IN_LIST split AND line MATCHES "^  ([^ ]+)")
    add_entry("${suite}.${CMAKE_MATCH_1}")
  endif()  # Else a test of a whole suite, or what the main function says.
endforeach()
if(entries STREQUAL "")
  message(FATAL_ERROR "${BINARY} has no test")
endif()
file(WRITE ${OUTPUT} "${entries}")
