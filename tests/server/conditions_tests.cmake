# The engine of conditions: windows, hysteresis, the loop.
tacho_test(conditions_test LABEL unit
  SOURCES conditions/condition_engine_fixture.h conditions/condition_engine_test.cc conditions/condition_state_test.cc
          conditions/track_points_test.cc conditions/window_builder_test.cc
  DEPS tacho::conditions tacho::yaml_config RocksDB::rocksdb-shared)
