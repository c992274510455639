# Tests of client/ctl, included by the CMakeLists.txt beside it.
tacho_test(ctl_parse_test LABEL unit SOURCES ctl_parse_test.cc DEPS tacho::ctl)
tacho_test(ctl_format_test LABEL unit SOURCES ctl_format_test.cc DEPS tacho::ctl)
tacho_test(ctl_run_test LABEL unit SOURCES ctl_run_test.cc ctl_fake_query.h DEPS tacho::ctl)
tacho_test(channel_security_test LABEL unit
  SOURCES channel_security_test.cc
  DEPS tacho::channel tacho::config_files tacho::test_certificates)
tacho_test(ctl_security_test LABEL unit
  SOURCES ctl_security_test.cc ctl_fake_query.h
  DEPS tacho::ctl tacho::test_certificates)
