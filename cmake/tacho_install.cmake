# What other projects get: find_package(tacho) with tacho::client, tacho::shared (libtacho.so.1, for C),
# tacho::proto and tacho::client_direct; pkg-config has tacho (C) and tacho++ (the recorder in C++).
# Programs are installed where they are declared.
#
# Components, for `cmake --install BUILD --component NAME`: collector, agent, ctl, example (one program
# each), manual (pages and completion of shells), library (libtacho.so.1), development, documents. Each
# needs only its own targets to be built.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tacho)
set(development DESTINATION ${package_dir} COMPONENT development)

# Installs static libraries, and the export of that name.
function(tacho_install_export name)
  install(TARGETS ${ARGN} EXPORT ${name} ARCHIVE COMPONENT development)
  install(EXPORT ${name} NAMESPACE tacho:: ${development})
endfunction()

install(TARGETS tacho_shared EXPORT tachoClientTargets
  LIBRARY COMPONENT library NAMELINK_COMPONENT development)
tacho_install_export(tachoClientTargets tacho_client tacho_crc32c)
tacho_install_export(tachoProtoTargets tacho_proto tacho_admin_proto)
tacho_install_export(tachoDirectTargets tacho_client_direct tacho_channel tacho_config_files
  tacho_histogram_layout tacho_interop_proto tacho_job_shard tacho_retry_delay tacho_timed_wait
  tacho_upload)
install(TARGETS tacho-example-train COMPONENT example)

# tacho_install_headers(<folder> <file>...): below include/tacho, as sources include them.
function(tacho_install_headers folder)
  list(TRANSFORM ARGN PREPEND ${folder}/)
  install(FILES ${ARGN} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tacho/${folder} COMPONENT development)
endfunction()

tacho_install_headers(client collective_scope.h histogram_buckets.h metric.h recorder.h step_scope.h)
tacho_install_headers(client/direct direct_recorder.h)
tacho_install_headers(client/channel channel_security.h)
install(FILES client/c/tacho.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(DIRECTORY ${PROJECT_BINARY_DIR}/proto/tacho/v1 proto/tacho/v1
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tacho/tacho COMPONENT development
  FILES_MATCHING PATTERN "*.pb.h" PATTERN "*.proto")

configure_package_config_file(cmake/tachoConfig.cmake.in ${PROJECT_BINARY_DIR}/tachoConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tachoConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tachoConfig.cmake ${PROJECT_BINARY_DIR}/tachoConfigVersion.cmake
  ${development})

# From the file's own place, so that `cmake --install --prefix` and a package may choose the prefix.
set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH prefix_from_pkgconfig /${pkgconfig_dir} /)
string(REGEX REPLACE "/$" "" prefix_from_pkgconfig ${prefix_from_pkgconfig})
foreach(module tacho tacho++)
  configure_file(cmake/${module}.pc.in ${PROJECT_BINARY_DIR}/${module}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${module}.pc DESTINATION ${pkgconfig_dir} COMPONENT development)
endforeach()

install(FILES LICENSE README.md TYPE DOC COMPONENT documents)

# What people read and type, from the same texts as --help: manual pages and completion of shells.
set(manual_dir ${PROJECT_BINARY_DIR}/manual)
file(MAKE_DIRECTORY ${manual_dir})
add_custom_command(OUTPUT ${manual_dir}/tachoctl.1
  COMMAND tacho-manual > tachoctl.1
  DEPENDS tacho-manual WORKING_DIRECTORY ${manual_dir} VERBATIM)
add_custom_command(OUTPUT ${manual_dir}/tacho-collector.8
  COMMAND tacho-collector --help > tacho-collector.help
  COMMAND tacho-manual tacho-collector 8 tacho-collector.help > tacho-collector.8
  DEPENDS tacho-manual tacho-collector WORKING_DIRECTORY ${manual_dir} VERBATIM)
add_custom_command(OUTPUT ${manual_dir}/tacho-agent.8
  COMMAND tacho-agent --help > tacho-agent.help
  COMMAND tacho-agent diagnose --help > tacho-agent-diagnose.help
  COMMAND tacho-manual tacho-agent 8 tacho-agent.help tacho-agent-diagnose.help > tacho-agent.8
  DEPENDS tacho-manual tacho-agent WORKING_DIRECTORY ${manual_dir} VERBATIM)
add_custom_command(OUTPUT ${manual_dir}/tachoctl ${manual_dir}/_tachoctl ${manual_dir}/tachoctl.fish
  COMMAND tachoctl completion bash > tachoctl
  COMMAND tachoctl completion zsh > _tachoctl
  COMMAND tachoctl completion fish > tachoctl.fish
  DEPENDS tachoctl WORKING_DIRECTORY ${manual_dir} VERBATIM)
add_custom_target(manual ALL DEPENDS
  ${manual_dir}/tachoctl.1 ${manual_dir}/tacho-collector.8 ${manual_dir}/tacho-agent.8
  ${manual_dir}/tachoctl ${manual_dir}/_tachoctl ${manual_dir}/tachoctl.fish)

# tacho_install_manual(<folder below the prefix> <file>...)
function(tacho_install_manual folder)
  list(TRANSFORM ARGN PREPEND ${manual_dir}/)
  install(FILES ${ARGN} DESTINATION ${folder} COMPONENT manual)
endfunction()

tacho_install_manual(${CMAKE_INSTALL_MANDIR}/man1 tachoctl.1)
tacho_install_manual(${CMAKE_INSTALL_MANDIR}/man8 tacho-collector.8 tacho-agent.8)
tacho_install_manual(${CMAKE_INSTALL_DATADIR}/bash-completion/completions tachoctl)
tacho_install_manual(${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions _tachoctl)
tacho_install_manual(${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d tachoctl.fish)
