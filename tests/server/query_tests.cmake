# Queries, aggregates and HTTP.
tacho_test(query_test LABEL unit
  SOURCES query/compare_parts_test.cc query/fold_by_time_test.cc query/query_fold_test.cc query/query_listing_test.cc
          query/query_parts_test.cc query/query_range_test.cc query/query_timeline_test.cc query/reduce_test.cc fake_store.h
  DEPS tacho::query)
tacho_test(query_service_test LABEL unit
  SOURCES query/query_service_test.cc fake_store.h
  DEPS tacho::query gRPC::grpc++)
tacho_test(aggregate_test LABEL unit
  SOURCES aggregate/aggregate_counters_test.cc aggregate/aggregate_fixture.h aggregate/aggregate_rules_test.cc aggregate/aggregate_test.cc
          aggregate/exposition_name_test.cc fake_store.h
  DEPS tacho::aggregate tacho::quantile)
tacho_test(metric_list_test LABEL unit SOURCES metrics/metric_list_test.cc DEPS tacho::metric_list)
target_compile_definitions(metric_list_test PRIVATE TACHO_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
tacho_test(http_test LABEL unit
  SOURCES http/family_text_test.cc http/http_accept_test.cc http/http_front_test.cc http/http_server_test.cc
          http/metrics_page_test.cc fake_store.h
  DEPS tacho::http PkgConfig::HTTPLIB ZLIB::ZLIB)
tacho_test(query_store_test LABEL unit
  SOURCES query/query_store_test.cc
  DEPS tacho::query tacho::aggregate RocksDB::rocksdb-shared)
tacho_test(tensorboard_test LABEL unit
  SOURCES tensorboard/tensorboard_answers_test.cc tensorboard/tensorboard_sampler_test.cc
  DEPS tacho::tensorboard RocksDB::rocksdb-shared)
tacho_test(query_random_test LABEL unit
  SOURCES query/query_random_test.cc query/query_reference.cc query/query_reference.h
  DEPS tacho::query RocksDB::rocksdb-shared)
tacho_test(query_jobs_test LABEL unit
  SOURCES query/query_jobs_test.cc
  DEPS tacho::query RocksDB::rocksdb-shared)
tacho_test(query_ahead_test LABEL unit
  SOURCES query/query_ahead_test.cc query/query_store_fixture.h
  DEPS tacho::query RocksDB::rocksdb-shared)
tacho_test(query_history_test LABEL unit
  SOURCES query/query_compare_test.cc query/query_export_test.cc query/query_first_non_finite_test.cc query/query_store_fixture.h
  DEPS tacho::query RocksDB::rocksdb-shared)
tacho_test(conditions_watch_test LABEL unit
  SOURCES query/conditions_watch_test.cc fake_store.h
  DEPS tacho::query gRPC::grpc++)
tacho_test(query_watch_test LABEL unit
  SOURCES query/query_watch_test.cc query/query_store_fixture.h
  DEPS tacho::query gRPC::grpc++ RocksDB::rocksdb-shared)
