# What other projects get: find_package(tacho) with tacho::client, tacho::shared (libtacho.so.1, for C),
# tacho::proto and tacho::client_direct. Programs are installed where they are declared.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tacho)

install(TARGETS tacho_client tacho_crc32c tacho_shared EXPORT tachoClientTargets)
install(TARGETS tacho_proto tacho_admin_proto EXPORT tachoProtoTargets)
install(TARGETS tacho_client_direct tacho_channel tacho_config_files tacho_histogram_layout
  tacho_interop_proto tacho_timed_wait tacho_upload EXPORT tachoDirectTargets)
install(TARGETS tacho-example-train)
install(EXPORT tachoClientTargets NAMESPACE tacho:: DESTINATION ${package_dir})
install(EXPORT tachoProtoTargets NAMESPACE tacho:: DESTINATION ${package_dir})
install(EXPORT tachoDirectTargets NAMESPACE tacho:: DESTINATION ${package_dir})

install(FILES client/histogram_buckets.h client/metric.h client/recorder.h client/step_scope.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tacho/client)
install(FILES client/direct/direct_recorder.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tacho/client/direct)
install(FILES client/channel/channel_security.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tacho/client/channel)
install(FILES client/c/tacho.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_BINARY_DIR}/proto/tacho/v1 proto/tacho/v1
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tacho/tacho
  FILES_MATCHING PATTERN "*.pb.h" PATTERN "*.proto")

configure_package_config_file(cmake/tachoConfig.cmake.in ${PROJECT_BINARY_DIR}/tachoConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tachoConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tachoConfig.cmake ${PROJECT_BINARY_DIR}/tachoConfigVersion.cmake
  DESTINATION ${package_dir})
install(FILES LICENSE README.md TYPE DOC OPTIONAL)

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
install(FILES ${manual_dir}/tachoctl.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${manual_dir}/tacho-collector.8 ${manual_dir}/tacho-agent.8
  DESTINATION ${CMAKE_INSTALL_MANDIR}/man8)
install(FILES ${manual_dir}/tachoctl
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${manual_dir}/_tachoctl DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(FILES ${manual_dir}/tachoctl.fish
  DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
