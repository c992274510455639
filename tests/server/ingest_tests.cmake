# Ingest service, admission, the collector as a whole.
tacho_test(grpc_status_test LABEL unit
  SOURCES errors/grpc_status_test.cc DEPS tacho::grpc_status tacho::interop_proto)
tacho_test(error_table_test LABEL unit
  SOURCES errors/error_table_test.cc DEPS tacho::error_table tacho::http)
target_compile_definitions(error_table_test PRIVATE TACHO_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
tacho_test(error_rows_test LABEL unit
  SOURCES errors/error_rows_test.cc ingest/ingest_messages.h
  DEPS tacho::collector tacho::yaml_config tacho::error_table tacho::interop_proto
       tacho::test_certificates RocksDB::rocksdb-shared)
tacho_test(door_test LABEL unit
  SOURCES edge/door_test.cc DEPS tacho::door)
tacho_test(quota_test LABEL unit
  SOURCES edge/quota_test.cc DEPS tacho::quota)
tacho_test(wire_check_test LABEL unit
  SOURCES ingest/wire_check_test.cc ingest/ingest_messages.h DEPS tacho::ingest)
tacho_test(series_limiting_test LABEL unit
  SOURCES limits/refusal_ledger_test.cc DEPS tacho::limits)
tacho_test(ingest_text_rules_test LABEL unit
  SOURCES ingest/ingest_text_rules_test.cc DEPS tacho::ingest)
tacho_test(ingest_session_test LABEL unit
  SOURCES ingest/ingest_session_test.cc ingest/ingest_session_limits_test.cc ingest/ingest_session_fixture.h
          ingest/ingest_fake_store.h ingest/ingest_malformed.h ingest/ingest_messages.h
  DEPS tacho::ingest)
tacho_test(ingest_stream_test LABEL unit
  SOURCES ingest/ingest_stream_test.cc ingest/ingest_stream_flow_test.cc ingest/ingest_stream_fixture.h
          ingest/ingest_fake_store.h ingest/ingest_malformed.h ingest/ingest_messages.h
  DEPS tacho::ingest tacho::interop_proto)
tacho_test(collector_test LABEL unit
  SOURCES collector/collector_admin_test.cc collector/collector_reload_test.cc collector/collector_test.cc ingest/ingest_messages.h
  DEPS tacho::collector tacho::test_certificates tacho::yaml_config gRPC::grpc++_reflection
       RocksDB::rocksdb-shared PkgConfig::HTTPLIB)
tacho_test(collector_command_line_test LABEL unit
  SOURCES collector/collector_command_line_test.cc DEPS tacho::collector)
