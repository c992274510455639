# Tests of agent/sources.
tacho_test(tfevents_source_test LABEL unit TIMEOUT 120
  SOURCES sources/tfevents/log_tree_test.cc recording_sink.cc recording_sink.h sources/tfevents/tfevents_files_test.cc
          sources/tfevents/tfevents_foreign_test.cc sources/tfevents/tfevents_source_fixture.h sources/tfevents/tfevents_source_test.cc ../support/tfevents_writer.cc
  DEPS tacho::agent_sources absl::strings)
target_compile_definitions(tfevents_source_test PRIVATE TACHO_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
tacho_test(host_source_test LABEL unit
  SOURCES sources/host/host_parsers_test.cc sources/host/host_source_test.cc sources/make_sources_test.cc recording_sink.cc recording_sink.h
          ../support/tfevents_writer.cc
  DEPS tacho::agent_sources absl::strings)
tacho_test(ring_users_test LABEL unit
  SOURCES recording_sink.cc recording_sink.h sources/rings/ring_users_test.cc
  DEPS tacho::agent_sources tacho::client absl::strings)
tacho_test(ring_source_test LABEL unit
  SOURCES recording_sink.cc recording_sink.h sources/rings/ring_source_test.cc sources/rows/trouble_log_test.cc
          ../support/tfevents_writer.cc
  DEPS tacho::agent_sources tacho::client absl::strings)
tacho_test(gpu_source_test LABEL unit
  SOURCES sources/chips/call_worker_test.cc sources/chips/chip_rows_test.cc sources/chips/chip_inventory_test.cc sources/chips/chip_source_fixture.h sources/gpu/gpu_reader_test.cc
          sources/gpu/gpu_source_test.cc sources/gpu/gpu_test_machine.cc sources/gpu/gpu_test_machine.h recording_sink.cc recording_sink.h
          ../support/tfevents_writer.cc
  DEPS tacho::agent_chips tacho::tfevents absl::strings)
add_dependencies(gpu_source_test tacho_fake_nvml tacho_fake_nvml_old)
target_compile_definitions(gpu_source_test PRIVATE
  TACHO_FAKE_NVML="$<TARGET_FILE:tacho_fake_nvml>" TACHO_FAKE_NVML_OLD="$<TARGET_FILE:tacho_fake_nvml_old>")
tacho_test(tpu_source_test LABEL unit
  SOURCES sources/chips/chip_holders_test.cc sources/chips/chip_jobs_test.cc sources/chips/chip_source_fixture.h sources/tpu/hang_watch_test.cc
          recording_sink.cc recording_sink.h sources/tpu/tpu_chips_test.cc sources/tpu/tpu_errors_test.cc sources/tpu/tpu_places_test.cc sources/tpu/tpu_points_test.cc sources/tpu/tpu_source_test.cc sources/tpu/tpu_test_machine.cc sources/tpu/tpu_test_machine.h
          sources/tpu/tpu_totals_test.cc ../support/tfevents_writer.cc
  DEPS tacho::agent_chips tacho::fake_libtpu tacho::client tacho::tfevents absl::strings)
tacho_test(agent_exposition_test LABEL unit
  SOURCES sources/text/exposition_replay_test.cc sources/text/exposition_test.cc
  DEPS tacho::exposition absl::strings)
target_compile_definitions(agent_exposition_test PRIVATE TACHO_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
tacho_test(agent_text_sources_test LABEL unit
  SOURCES sources/fetch/http_get_test.cc recording_sink.cc recording_sink.h sources/text/text_sources_test.cc
          ../support/canned_http_server.cc ../support/canned_http_server.h
          ../support/tfevents_writer.cc
  DEPS tacho::agent_sources absl::strings absl::synchronization)
tacho_test(agent_identity_test LABEL unit
  SOURCES sources/identity/agent_identity_test.cc sources/identity/host_facts_test.cc sources/identity/metadata_server_test.cc sources/notices/notices_test.cc
          recording_sink.cc recording_sink.h sources/identity/tpu_env_test.cc sources/tpu/tpu_test_machine.cc sources/tpu/tpu_test_machine.h
          ../support/canned_http_server.cc ../support/canned_http_server.h
          ../support/fake_metadata_server.cc ../support/fake_metadata_server.h
          ../support/tfevents_writer.cc
  DEPS tacho::agent_core tacho::client tacho::tfevents absl::strings absl::synchronization)
tacho_test(agent_host_more_test LABEL unit
  SOURCES sources/host/host_more_test.cc recording_sink.cc recording_sink.h ../support/tfevents_writer.cc
  DEPS tacho::agent_sources tacho::client absl::strings)
