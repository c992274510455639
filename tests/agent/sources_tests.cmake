# Tests of agent/sources.
tacho_test(tfevents_source_test LABEL unit TIMEOUT 120
  SOURCES recording_sink.cc recording_sink.h tfevents_files_test.cc tfevents_source_fixture.h
          tfevents_source_test.cc ../support/tfevents_writer.cc
  DEPS tacho::agent_sources absl::strings)
target_compile_definitions(tfevents_source_test PRIVATE TACHO_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
tacho_test(host_source_test LABEL unit
  SOURCES host_parsers_test.cc host_source_test.cc make_sources_test.cc recording_sink.cc recording_sink.h
          ../support/tfevents_writer.cc
  DEPS tacho::agent_sources absl::strings)
tacho_test(ring_source_test LABEL unit
  SOURCES recording_sink.cc recording_sink.h ring_source_test.cc trouble_log_test.cc
          ../support/tfevents_writer.cc
  DEPS tacho::agent_sources tacho::client absl::strings)
