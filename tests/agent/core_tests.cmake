# Tests of the spool, the stream, and the agent's parts.
tacho_test(agent_spool_test LABEL unit
  SOURCES spool_ages_test.cc spool_bounds_test.cc spool_test.cc spool_test_fixture.h DEPS tacho::agent_core RocksDB::rocksdb-shared)
tacho_test(agent_stream_test LABEL unit
  SOURCES stream_pieces_test.cc collector_choice_test.cc
  DEPS tacho::agent_core tacho::interop_proto)
tacho_test(agent_spool_outage_test LABEL unit TIMEOUT 180
  SOURCES fake_collector.h spool_outage_test.cc DEPS tacho::agent_core)
tacho_test(agent_lanes_test LABEL unit
  SOURCES stream_lanes_test.cc DEPS tacho::agent_core RocksDB::rocksdb-shared)
tacho_test(agent_sender_test LABEL unit
  SOURCES fake_collector.h sender_fixture.h stream_refusal_test.cc stream_sender_test.cc
  DEPS tacho::agent_core)
tacho_test(agent_sampler_test LABEL unit
  SOURCES cadence_test.cc recording_sink.cc recording_sink.h sampler_test.cc self_source_test.cc
          source_turn_test.cc
  DEPS tacho::agent_core absl::strings)
tacho_test(agent_diagnose_test LABEL unit
  SOURCES diagnose_test.cc ../support/canned_http_server.cc ../support/canned_http_server.h
          ../support/fake_metadata_server.cc ../support/fake_metadata_server.h
          ../support/tfevents_writer.cc
  DEPS tacho::agent_diagnose tacho::yaml_config absl::strings absl::synchronization)
