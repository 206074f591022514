# SPDX-License-Identifier: Apache-2.0
# flagos_add_protos(NAME target PROTOS flagos/v1/a.proto ...): a static library of the messages and gRPC services in PROTOS,
# which are named relative to the calling folder. Their headers are included as "flagos/v1/a.pb.h", "flagos/v1/a.grpc.pb.h".
function(flagos_add_protos)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME" "PROTOS")
  set(out "${CMAKE_CURRENT_BINARY_DIR}")
  set(generated "")
  foreach(proto ${arg_PROTOS})
    string(REGEX REPLACE "\\.proto$" "" stem "${proto}")
    set(files "${out}/${stem}.pb.cc" "${out}/${stem}.grpc.pb.cc")
    set(headers "${out}/${stem}.pb.h" "${out}/${stem}.grpc.pb.h")
    add_custom_command(
      OUTPUT ${files} ${headers}
      COMMAND ${PROTOC} -I "${CMAKE_CURRENT_SOURCE_DIR}" --cpp_out "${out}" --grpc_out "${out}"
        --plugin=protoc-gen-grpc=${GRPC_CPP_PLUGIN} "${CMAKE_CURRENT_SOURCE_DIR}/${proto}"
      DEPENDS ${arg_PROTOS}
      COMMENT "Generating ${stem}.pb and ${stem}.grpc.pb"
      VERBATIM)
    list(APPEND generated ${files} ${headers})
  endforeach()

  add_custom_target(${arg_NAME}_generated DEPENDS ${generated})
  add_dependencies(generated ${arg_NAME}_generated)

  # Generated code is not held to our warnings, neither here nor, as a system header, where it is included.
  add_library(${arg_NAME} STATIC ${generated})
  target_compile_options(${arg_NAME} PRIVATE -w)
  target_include_directories(${arg_NAME} SYSTEM PUBLIC "${out}")
  target_link_libraries(${arg_NAME} PUBLIC flagos::grpc)
endfunction()
