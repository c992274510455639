# TLS, tokens, client certificates.
tacho_library(test_certificates
  SOURCES ${PROJECT_SOURCE_DIR}/tests/support/certificates.cc
          ${PROJECT_SOURCE_DIR}/tests/support/certificates.h
  PUBLIC  absl::strings absl::time OpenSSL::Crypto)
tacho_test(security_access_test LABEL unit
  SOURCES security/security_access_test.cc DEPS tacho::security tacho::yaml_config tacho::test_certificates)
tacho_test(security_tls_test LABEL unit
  SOURCES security/security_tls_test.cc
  DEPS tacho::security_grpc tacho::proto tacho::test_certificates)
