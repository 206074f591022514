# SPDX-License-Identifier: Apache-2.0
if(NOT TARGET flagos_ctl)
  return()
endif()
flagos_add_test(NAME ctl_test
  SOURCES
    ctl_command_test.cc
    ctl_doctor_test.cc
    ctl_options_test.cc
    ctl_render_test.cc
    ctl_text_test.cc
  LIBS flagos_ctl)
