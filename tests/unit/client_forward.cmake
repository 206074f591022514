# SPDX-License-Identifier: Apache-2.0
# How the client writes calls; that they run is tested end to end, from Python.
if(TARGET flagos_client)
  flagos_add_test(TORCH NAME client_forward_test
    SOURCES
      client_forward_test.cc
      client_signature_table_test.cc
      $<TARGET_OBJECTS:flagos_client>
    LIBS flagos_client_base)
endif()
