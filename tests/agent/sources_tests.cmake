# Tests of agent/sources.
tacho_test(tfevents_source_test LABEL unit TIMEOUT 120
  SOURCES log_tree_test.cc recording_sink.cc recording_sink.h tfevents_files_test.cc
          tfevents_foreign_test.cc tfevents_source_fixture.h tfevents_source_test.cc ../support/tfevents_writer.cc
  DEPS tacho::agent_sources absl::strings)
target_compile_definitions(tfevents_source_test PRIVATE TACHO_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
tacho_test(host_source_test LABEL unit
  SOURCES host_parsers_test.cc host_source_test.cc make_sources_test.cc recording_sink.cc recording_sink.h
          ../support/tfevents_writer.cc
  DEPS tacho::agent_sources absl::strings)
tacho_test(ring_users_test LABEL unit
  SOURCES recording_sink.cc recording_sink.h ring_users_test.cc
  DEPS tacho::agent_sources tacho::client absl::strings)
tacho_test(ring_source_test LABEL unit
  SOURCES recording_sink.cc recording_sink.h ring_source_test.cc trouble_log_test.cc
          ../support/tfevents_writer.cc
  DEPS tacho::agent_sources tacho::client absl::strings)
tacho_test(gpu_source_test LABEL unit
  SOURCES call_worker_test.cc chip_rows_test.cc chip_inventory_test.cc chip_source_fixture.h gpu_reader_test.cc
          gpu_source_test.cc gpu_test_machine.cc gpu_test_machine.h recording_sink.cc recording_sink.h
          ../support/tfevents_writer.cc
  DEPS tacho::agent_chips tacho::tfevents absl::strings)
add_dependencies(gpu_source_test tacho_fake_nvml tacho_fake_nvml_old)
target_compile_definitions(gpu_source_test PRIVATE
  TACHO_FAKE_NVML="$<TARGET_FILE:tacho_fake_nvml>" TACHO_FAKE_NVML_OLD="$<TARGET_FILE:tacho_fake_nvml_old>")
tacho_test(tpu_source_test LABEL unit
  SOURCES chip_holders_test.cc chip_jobs_test.cc chip_source_fixture.h hang_watch_test.cc
          recording_sink.cc recording_sink.h tpu_chips_test.cc tpu_errors_test.cc tpu_places_test.cc tpu_points_test.cc tpu_source_test.cc tpu_test_machine.cc tpu_test_machine.h
          tpu_totals_test.cc ../support/tfevents_writer.cc
  DEPS tacho::agent_chips tacho::fake_libtpu tacho::client tacho::tfevents absl::strings)
tacho_test(agent_exposition_test LABEL unit
  SOURCES exposition_replay_test.cc exposition_test.cc
  DEPS tacho::exposition absl::strings)
target_compile_definitions(agent_exposition_test PRIVATE TACHO_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
tacho_test(agent_text_sources_test LABEL unit
  SOURCES http_get_test.cc recording_sink.cc recording_sink.h text_sources_test.cc
          ../support/canned_http_server.cc ../support/canned_http_server.h
          ../support/tfevents_writer.cc
  DEPS tacho::agent_sources absl::strings absl::synchronization)
tacho_test(agent_identity_test LABEL unit
  SOURCES agent_identity_test.cc host_facts_test.cc metadata_server_test.cc notices_test.cc
          recording_sink.cc recording_sink.h tpu_env_test.cc tpu_test_machine.cc tpu_test_machine.h
          ../support/canned_http_server.cc ../support/canned_http_server.h
          ../support/fake_metadata_server.cc ../support/fake_metadata_server.h
          ../support/tfevents_writer.cc
  DEPS tacho::agent_core tacho::client tacho::tfevents absl::strings absl::synchronization)
tacho_test(agent_host_more_test LABEL unit
  SOURCES host_more_test.cc recording_sink.cc recording_sink.h ../support/tfevents_writer.cc
  DEPS tacho::agent_sources tacho::client absl::strings)
