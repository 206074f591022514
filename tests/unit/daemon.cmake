# SPDX-License-Identifier: Apache-2.0
set(support "${CMAKE_CURRENT_SOURCE_DIR}/../support")

flagos_add_test(NAME server_common_test SOURCES server_log_test.cc server_status_test.cc server_strings_test.cc
  LIBS flagos_server_common flagos::spdlog nlohmann_json::nlohmann_json)

flagos_add_library(NAME flagos_daemon_harness SOURCES "${support}/daemon_process.cc" LIBS flagos_executor_harness)

flagos_add_test(NAME daemon_parts_test
  SOURCES
    daemon_accept_test.cc
    daemon_audit_test.cc
    daemon_config_keys_test.cc
    daemon_config_test.cc
    daemon_containers_test.cc
    daemon_lease_test.cc
    daemon_loop_test.cc
    daemon_metrics_test.cc
    daemon_peer_test.cc
    daemon_pool_test.cc
    daemon_quota_test.cc
    daemon_socket_test.cc
    daemon_state_test.cc
    daemon_supervisor_test.cc
    daemon_telemetry_test.cc
    daemon_units_test.cc
  LIBS flagos_daemon flagos_daemon_harness)
add_dependencies(daemon_parts_test flagos-monitor flagos_cpu_monitor)
target_compile_definitions(daemon_parts_test PRIVATE FLAGOS_EXAMPLE_CONFIG="${CMAKE_SOURCE_DIR}/deploy/flagosd.toml")

flagos_add_test(NAME daemon_process_test
  SOURCES
    daemon_attach_test.cc
    daemon_control_test.cc
    daemon_lost_test.cc
    daemon_recovery_test.cc
    daemon_reload_test.cc
    daemon_stop_test.cc
  LIBS flagos_control flagos_daemon_harness)
add_dependencies(daemon_process_test flagosd flagos-executor flagos_null flagos_test_faulty)
