# Tests of client/tfevents.
tacho_test(tfevents_parse_test LABEL unit
  SOURCES tfevents/tfevents_event_test.cc tfevents/tfevents_record_test.cc tfevents/tfevents_writer_test.cc
          ../support/tfevents_writer.cc
  DEPS tacho::tfevents tacho::client absl::strings)
