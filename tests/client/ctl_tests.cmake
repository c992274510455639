# Tests of client/ctl, included by the CMakeLists.txt beside it.
tacho_test(ctl_parse_test LABEL unit SOURCES ctl/ctl_parse_test.cc DEPS tacho::ctl)
tacho_test(ctl_format_test LABEL unit SOURCES ctl/ctl_format_test.cc DEPS tacho::ctl)
tacho_test(ctl_run_test LABEL unit SOURCES ctl/ctl_run_test.cc ctl/ctl_fake_query.h DEPS tacho::ctl)

# Whole outputs are compared with files in golden/.
function(tacho_reading_test name source)
  tacho_test(${name} LABEL unit
    SOURCES ${source} ctl/ctl_comparison_fixture.h ctl/ctl_fake_query.h ctl/ctl_reading_fixture.h
    DEPS tacho::ctl)
  target_compile_definitions(${name} PRIVATE
    TACHO_GOLDEN_DIR="${CMAKE_CURRENT_SOURCE_DIR}/golden")
endfunction()
tacho_reading_test(ctl_reading_test ctl/ctl_reading_test.cc)
tacho_reading_test(ctl_agents_test ctl/ctl_agents_test.cc)
tacho_reading_test(ctl_goodput_test ctl/ctl_goodput_test.cc)
tacho_reading_test(ctl_plot_test ctl/ctl_plot_test.cc)
tacho_reading_test(ctl_compare_test ctl/ctl_compare_test.cc)
tacho_reading_test(ctl_conditions_test ctl/ctl_conditions_test.cc)
tacho_reading_test(ctl_report_test ctl/ctl_report_test.cc)
tacho_reading_test(ctl_watch_test ctl/ctl_watch_test.cc)

tacho_test(channel_security_test LABEL unit
  SOURCES channel/channel_security_test.cc
  DEPS tacho::channel tacho::config_files tacho::test_certificates)
tacho_test(ctl_security_test LABEL unit
  SOURCES ctl/ctl_security_test.cc ctl/ctl_fake_query.h
  DEPS tacho::ctl tacho::test_certificates)
