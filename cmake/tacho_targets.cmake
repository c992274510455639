# The two functions that every module's CMakeLists.txt is written with, so that warnings,
# sanitizers and include paths are decided in one place and apply only to our own code.

add_library(tacho_build_flags INTERFACE)
target_compile_options(tacho_build_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
  -Wnon-virtual-dtor -Woverloaded-virtual
  -Wno-missing-field-initializers  # Designated initializers leave the rest at its default.
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
  # GCC 12 reports these in inlined library code where nothing is wrong.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized -Wno-restrict>
  # A batch includes its sources, where an anonymous namespace is as private as elsewhere.
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<BOOL:${TACHO_UNITY}>>:-Wno-subobject-linkage>
  # Collecting garbage below half a gigabyte costs GCC a tenth of its time. With ccache, a source that
  # is preprocessed has to name its precompiled header.
  $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=524288 -fpch-preprocess>
  $<$<BOOL:${TACHO_WERROR}>:-Werror>)
if(TACHO_SANITIZER)
  # protobuf, gRPC and RocksDB come uninstrumented from the distribution; the suppressions of
  # tests/support/ cover what that makes the sanitizers misread, and nothing of ours.
  target_compile_options(tacho_build_flags INTERFACE
    -fsanitize=${TACHO_SANITIZER} -fno-omit-frame-pointer)
  target_link_options(tacho_build_flags INTERFACE -fsanitize=${TACHO_SANITIZER})
endif()
find_program(TACHO_MOLD mold)
if(TACHO_MOLD)  # Links a program in a tenth of the time that GNU ld takes.
  target_link_options(tacho_build_flags INTERFACE -fuse-ld=mold)
endif()
if(TACHO_FUZZ)
  target_compile_options(tacho_build_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# tacho_unity(<target>): compiles its sources in batches if TACHO_UNITY is on. Most of a source's time
# goes into templates of headers, which a batch instantiates once. The sources of a target share one
# scope then, so names in their anonymous namespaces must differ.
function(tacho_unity target)
  set_target_properties(${target} PROPERTIES
    UNITY_BUILD ${TACHO_UNITY} UNITY_BUILD_BATCH_SIZE 10)
endfunction()

# tacho_library(<name> [PCH base|proto|none] SOURCES ... PUBLIC ... PRIVATE ...) -> target tacho::<name>
#
# PCH: which precompiled header of tacho_pch.cmake; base if nothing is said.
function(tacho_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "PCH" "SOURCES;PUBLIC;PRIVATE")
  add_library(tacho_${name} STATIC ${arg_SOURCES})
  add_library(tacho::${name} ALIAS tacho_${name})
  set_target_properties(tacho_${name} PROPERTIES EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON)
  # Our headers need it, so that users' targets must not be compiled as anything older.
  target_compile_features(tacho_${name} PUBLIC cxx_std_20)
  target_include_directories(tacho_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/tacho>)
  target_link_libraries(tacho_${name}
    PUBLIC ${arg_PUBLIC} PRIVATE ${arg_PRIVATE} $<BUILD_INTERFACE:tacho_build_flags>)
  if(NOT arg_PCH)
    set(arg_PCH base)
  endif()
  tacho_use_pch(tacho_${name} ${arg_PCH})
  tacho_unity(tacho_${name})
endfunction()

# tacho_batch_tests(<name> <variable> <source...>): sets the variable to the sources that compile these.
# If TACHO_TEST_BATCHES is on, up to five files of tests are one. A source with definitions of its own or
# a header stays alone.
function(tacho_batch_tests name variable)
  set(sources)
  set(waiting)
  foreach(source ${ARGN})
    get_source_file_property(definitions ${source} COMPILE_DEFINITIONS)
    string(REGEX REPLACE "\\.cc$" ".h" header ${source})
    if(TACHO_TEST_BATCHES AND source MATCHES "_test\\.cc$" AND NOT definitions
        AND NOT EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${header})
      cmake_path(ABSOLUTE_PATH source)
      list(APPEND waiting ${source})
    else()
      list(APPEND sources ${source})
    endif()
  endforeach()
  set(number 0)
  while(waiting)
    list(SUBLIST waiting 0 5 members)
    list(REMOVE_ITEM waiting ${members})
    set(batch ${CMAKE_CURRENT_BINARY_DIR}/${name}_batch_${number})
    list(JOIN members "\n" lines)
    file(CONFIGURE OUTPUT ${batch}.txt CONTENT "${lines}\n" @ONLY)
    set(script ${PROJECT_SOURCE_DIR}/cmake/batch_tests.py)
    add_custom_command(OUTPUT ${batch}.cc
      COMMAND /usr/bin/python3 -B ${script} ${batch} ${CMAKE_BINARY_DIR}
      DEPENDS ${script} ${batch}.txt ${members} VERBATIM)
    list(APPEND sources ${batch}.cc)
    math(EXPR number "${number} + 1")
  endwhile()
  set(${variable} ${sources} PARENT_SCOPE)
endfunction()

# tacho_test(<name> LABEL unit|integration|crash SOURCES ... DEPS ... [TIMEOUT seconds] [SPLIT suites])
# -> one binary for each room, and in CTest an entry for each test suite in it. Crash tests and the suites
# of SPLIT take long: there each TEST has an entry, so that they run beside each other.
function(tacho_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LABEL;TIMEOUT" "SOURCES;DEPS;SPLIT")
  if(NOT arg_LABEL)
    message(FATAL_ERROR "tacho_test(${name}): LABEL unit, integration or crash is missing")
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)  # Seconds on a busy machine with two cores; most take milliseconds.
  endif()
  tacho_batch_tests(${name} sources ${arg_SOURCES})
  add_executable(${name} ${sources})
  target_compile_definitions(${name} PRIVATE TACHO_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${arg_DEPS} GTest::gmock_main tacho_build_flags)
  tacho_use_pch(${name} test)
  if(TACHO_SANITIZER STREQUAL "thread")
    target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/support/tsan_absl.cc)
    target_link_libraries(${name} PRIVATE absl::synchronization)
  endif()
  if(arg_LABEL STREQUAL "crash")
    gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60
      PROPERTIES LABELS ${arg_LABEL} TIMEOUT ${arg_TIMEOUT})
    return()
  endif()
  set(suites ${CMAKE_CURRENT_BINARY_DIR}/${name}_suites.cmake)
  string(REPLACE ";" "," split "${arg_SPLIT}")
  add_custom_command(TARGET ${name} POST_BUILD BYPRODUCTS ${suites}
    COMMAND ${CMAKE_COMMAND} -D BINARY=$<TARGET_FILE:${name}> -D LABEL=${arg_LABEL}
      -D TIMEOUT=${arg_TIMEOUT} -D SPLIT=${split} -D RESULTS=${PROJECT_BINARY_DIR}/gtest -D OUTPUT=${suites}
      -P ${PROJECT_SOURCE_DIR}/cmake/tacho_list_suites.cmake
    VERBATIM)
  # A program that is not built has no entries: the clang slice builds some of them.
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/${name}_include.cmake
    "if(EXISTS \"${suites}\")\n  include(\"${suites}\")\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY
    TEST_INCLUDE_FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}_include.cmake)
endfunction()
