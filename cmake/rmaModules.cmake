# SPDX-License-Identifier: Apache-2.0

# rma_add_module(TARGET): the target is a program that uses rma; it is linked once more, as the module that rma-sim
# loads: sim/PROGRAM.so beside it, target TARGET.sim. Both have the same objects, compiled for shared libraries.
# Installed with the package: find_package(rma) brings it.
function(rma_add_module target)
  target_compile_options(${target} PRIVATE -fPIC -fno-semantic-interposition)
  add_library(${target}.sim MODULE $<TARGET_OBJECTS:${target}>)
  target_link_libraries(${target}.sim PRIVATE $<TARGET_PROPERTY:${target},LINK_LIBRARIES>)
  set_target_properties(${target}.sim PROPERTIES
    LINKER_LANGUAGE CXX
    PREFIX ""
    SUFFIX .so
    OUTPUT_NAME $<TARGET_FILE_BASE_NAME:${target}>
    LIBRARY_OUTPUT_DIRECTORY $<TARGET_FILE_DIR:${target}>/sim)
endfunction()
