# Tests of the spool, the stream, and the agent's parts.
tacho_test(agent_spool_test LABEL unit
  SOURCES spool_test.cc DEPS tacho::agent_core RocksDB::rocksdb-shared)
tacho_test(agent_stream_test LABEL unit
  SOURCES stream_pieces_test.cc agent_identity_test.cc collector_choice_test.cc
  DEPS tacho::agent_core tacho::interop_proto)
tacho_test(agent_lanes_test LABEL unit
  SOURCES stream_lanes_test.cc DEPS tacho::agent_core RocksDB::rocksdb-shared)
tacho_test(agent_sender_test LABEL unit
  SOURCES fake_collector.h sender_fixture.h stream_refusal_test.cc stream_sender_test.cc
  DEPS tacho::agent_core)
