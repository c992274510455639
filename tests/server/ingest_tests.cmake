# Ingest service, admission, the collector as a whole.
tacho_test(grpc_status_test LABEL unit
  SOURCES grpc_status_test.cc DEPS tacho::grpc_status tacho::interop_proto)
