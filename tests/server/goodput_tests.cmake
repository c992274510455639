# Where the wall time of jobs went.
tacho_test(goodput_ledger_test LABEL unit
  SOURCES goodput/goodput_ledger_test.cc goodput/goodput_figures_test.cc
  DEPS tacho::goodput_ledger)
tacho_test(goodput_job_test LABEL unit
  SOURCES goodput/goodput_board_test.cc goodput/goodput_job_test.cc
  DEPS tacho::goodput_families tacho::query RocksDB::rocksdb-shared)
