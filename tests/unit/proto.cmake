# SPDX-License-Identifier: Apache-2.0
flagos_add_test(NAME proto_wire_test
  SOURCES
    proto_attach_test.cc
    proto_definitions_test.cc
    proto_geometry_test.cc
    proto_golden_test.cc
    proto_kernels_test.cc
    proto_outcome_test.cc
    proto_reply_test.cc
    proto_signature_test.cc
    proto_sparse_test.cc
    proto_telemetry_test.cc
  LIBS flagos_protocol)
target_compile_definitions(proto_wire_test PRIVATE FLAGOS_PROTO_README="${CMAKE_SOURCE_DIR}/proto/README.md")

flagos_add_test(NAME proto_shm_test
  SOURCES
    proto_arbiter_test.cc
    proto_lease_test.cc
    proto_lock_test.cc
    proto_memfd_test.cc
    proto_replies_test.cc
    proto_ring_hostile_test.cc
    proto_ring_processes_test.cc
    proto_ring_test.cc
    proto_wait_test.cc
  LIBS flagos_protocol)

flagos_add_test(NAME proto_routing_test SOURCES proto_routing_test.cc LIBS flagos_protocol)
flagos_add_test(NAME proto_sleep_test SOURCES proto_sleep_test.cc LIBS flagos_protocol)
flagos_add_test(NAME proto_socket_test SOURCES proto_descriptors_test.cc proto_socket_test.cc LIBS flagos_protocol)
