# Tests of the spool, the stream, and the agent's parts.
tacho_test(agent_spool_test LABEL unit
  SOURCES spool/spool_ages_test.cc spool/spool_bounds_test.cc spool/spool_test.cc spool/spool_test_fixture.h DEPS tacho::agent_core RocksDB::rocksdb-shared)
tacho_test(agent_stream_test LABEL unit
  SOURCES stream/stream_pieces_test.cc stream/collector_choice_test.cc
  DEPS tacho::agent_core tacho::interop_proto)
tacho_test(agent_spool_outage_test LABEL unit TIMEOUT 180
  SOURCES stream/fake_collector.h stream/spool_outage_test.cc DEPS tacho::agent_core)
tacho_test(agent_lanes_test LABEL unit
  SOURCES stream/stream_lanes_test.cc DEPS tacho::agent_core RocksDB::rocksdb-shared)
tacho_test(agent_sender_test LABEL unit
  SOURCES stream/fake_collector.h stream/sender_fixture.h stream/stream_refusal_test.cc stream/stream_sender_test.cc
  DEPS tacho::agent_core)
tacho_test(agent_sampler_test LABEL unit
  SOURCES sources/rows/cadence_test.cc recording_sink.cc recording_sink.h sampler_test.cc sources/self/self_source_test.cc
          source_turn_test.cc
  DEPS tacho::agent_core absl::strings)
tacho_test(agent_diagnose_test LABEL unit
  SOURCES diagnose/diagnose_test.cc ../support/canned_http_server.cc ../support/canned_http_server.h
          ../support/fake_metadata_server.cc ../support/fake_metadata_server.h
          ../support/tfevents_writer.cc
  DEPS tacho::agent_diagnose tacho::yaml_config absl::strings absl::synchronization)
