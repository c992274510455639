# Ingest service, admission, the collector as a whole.
tacho_test(grpc_status_test LABEL unit
  SOURCES grpc_status_test.cc DEPS tacho::grpc_status tacho::interop_proto)
tacho_test(error_table_test LABEL unit
  SOURCES error_table_test.cc DEPS tacho::error_table tacho::http)
target_compile_definitions(error_table_test PRIVATE TACHO_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
tacho_test(error_rows_test LABEL unit
  SOURCES error_rows_test.cc ingest_messages.h
  DEPS tacho::collector tacho::yaml_config tacho::error_table tacho::interop_proto
       tacho::test_certificates RocksDB::rocksdb-shared)
tacho_test(door_test LABEL unit
  SOURCES door_test.cc DEPS tacho::door)
tacho_test(quota_test LABEL unit
  SOURCES quota_test.cc DEPS tacho::quota)
tacho_test(wire_check_test LABEL unit
  SOURCES wire_check_test.cc ingest_messages.h DEPS tacho::ingest)
tacho_test(series_limiting_test LABEL unit
  SOURCES refusal_ledger_test.cc DEPS tacho::limits)
tacho_test(ingest_text_rules_test LABEL unit
  SOURCES ingest_text_rules_test.cc DEPS tacho::ingest)
tacho_test(ingest_session_test LABEL unit
  SOURCES ingest_session_test.cc ingest_session_limits_test.cc ingest_session_fixture.h
          ingest_fake_store.h ingest_malformed.h ingest_messages.h
  DEPS tacho::ingest)
tacho_test(ingest_stream_test LABEL unit
  SOURCES ingest_stream_test.cc ingest_stream_flow_test.cc ingest_stream_fixture.h
          ingest_fake_store.h ingest_malformed.h ingest_messages.h
  DEPS tacho::ingest tacho::interop_proto)
tacho_test(collector_test LABEL unit
  SOURCES collector_admin_test.cc collector_reload_test.cc collector_test.cc ingest_messages.h
  DEPS tacho::collector tacho::test_certificates tacho::yaml_config gRPC::grpc++_reflection
       RocksDB::rocksdb-shared PkgConfig::HTTPLIB)
tacho_test(collector_command_line_test LABEL unit
  SOURCES collector_command_line_test.cc DEPS tacho::collector)
