# SPDX-License-Identifier: Apache-2.0
# The client's parts that need no libtorch; what needs it is tested end to end, from Python.
flagos_add_test(NAME client_test
  SOURCES
    client_address_space_test.cc
    client_arena_test.cc
    client_connection_test.cc
    client_endpoint_test.cc
    client_number_pool_test.cc
  LIBS flagos_client_base)
