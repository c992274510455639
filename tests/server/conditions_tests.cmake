# The engine of conditions: windows, hysteresis, the loop.
tacho_test(conditions_test LABEL unit
  SOURCES condition_engine_fixture.h condition_engine_test.cc condition_state_test.cc
          track_points_test.cc window_builder_test.cc
  DEPS tacho::conditions tacho::yaml_config RocksDB::rocksdb-shared)
