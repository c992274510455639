# Precompiled headers. Most of what a source costs to compile is the standard library, Abseil and, where
# they are used, protobuf and gRPC: it is read once here. A source still includes what it uses: the
# preset `clang` compiles without these.
#
# tacho_pch_base   the standard library and Abseil
# tacho_pch_proto  and protobuf and gRPC
# tacho_pch_test   and GoogleTest
option(TACHO_PCH "Compile with precompiled headers" ON)

set(pch_base
  <algorithm> <array> <atomic> <cmath> <cstdint> <cstring> <deque> <functional> <limits> <map> <memory>
  <numeric> <optional> <set> <span> <string> <thread> <tuple> <utility> <variant> <vector>
  <absl/base/thread_annotations.h> <absl/container/flat_hash_map.h> <absl/container/flat_hash_set.h>
  <absl/functional/function_ref.h> <absl/status/status.h> <absl/status/statusor.h>
  <absl/strings/str_cat.h> <absl/strings/str_format.h> <absl/strings/str_join.h>
  <absl/strings/str_split.h> <absl/strings/string_view.h> <absl/synchronization/mutex.h>
  <absl/time/clock.h> <absl/time/time.h> <absl/types/span.h>)
set(pch_proto
  ${pch_base} <google/protobuf/extension_set.h> <google/protobuf/generated_message_util.h>
  <google/protobuf/map_field.h> <google/protobuf/message.h> <google/protobuf/repeated_field.h>
  <google/protobuf/unknown_field_set.h> <google/protobuf/wire_format.h> <grpcpp/grpcpp.h>
  <grpcpp/support/client_callback.h> <grpcpp/support/server_callback.h>)

# As its users are compiled: libraries with -fPIC, tests with -fPIE.
function(tacho_pch name pic)
  file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/pch/${name}.cc CONTENT "// Makes the header.\n")
  add_library(${name} OBJECT ${CMAKE_BINARY_DIR}/pch/${name}.cc)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ${pic})
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_link_libraries(${name} PRIVATE tacho_build_flags)
  target_precompile_headers(${name} PRIVATE ${ARGN})
endfunction()

# tacho_use_pch(<target> base|proto|test|none)
function(tacho_use_pch target which)
  if(TACHO_PCH AND NOT which STREQUAL "none")
    target_precompile_headers(${target} REUSE_FROM tacho_pch_${which})
    if(which STREQUAL "test")  # Else only what links GoogleTest could use it.
      target_compile_definitions(${target} PRIVATE GTEST_HAS_PTHREAD=1)
    endif()
  endif()
endfunction()

if(TACHO_PCH)
  tacho_pch(tacho_pch_base ON ${pch_base})
  tacho_pch(tacho_pch_proto ON ${pch_proto})
  if(BUILD_TESTING)
    tacho_pch(tacho_pch_test OFF ${pch_proto} <gmock/gmock.h> <gtest/gtest.h>)
    target_link_libraries(tacho_pch_test PRIVATE GTest::gmock)
  endif()
endif()
