# Tests of client/import and of what tachoctl exports.
tacho_test(import_reader_test LABEL unit
  SOURCES import/import_reader_test.cc import/import_test_support.h DEPS tacho::import)
tacho_test(import_upload_test LABEL unit
  SOURCES import/import_upload_test.cc DEPS tacho::import)
