# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where: library, headers, the package (rmaConfig.cmake, rmaModules.cmake), rma.pc. Tools
# install themselves.
include(CMakePackageConfigHelpers)

set(rma_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/rma)
rma_install(TARGETS rma EXPORT rmaTargets FILE_SET HEADERS)
rma_install(EXPORT rmaTargets NAMESPACE rma:: DESTINATION ${rma_cmake_dir})

get_target_property(rma_library_type rma TYPE)
configure_package_config_file(cmake/rmaConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/rmaConfig.cmake
  INSTALL_DESTINATION ${rma_cmake_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/rmaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
rma_install(FILES ${CMAKE_CURRENT_BINARY_DIR}/rmaConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/rmaConfigVersion.cmake
  cmake/rmaModules.cmake
  DESTINATION ${rma_cmake_dir})

# Who links the archive must link what it needs; a shared library carries that itself.
if(rma_library_type STREQUAL STATIC_LIBRARY)
  set(rma_pc_requires "libcrypto fmt")
  set(rma_pc_libs "-pthread ${rma_context_flag}")
  if(RMA_HAVE_VERBS)
    string(APPEND rma_pc_requires " libibverbs")
  endif()
endif()
if(RMA_ASSERTS)
  set(rma_pc_cflags -DRMA_ASSERTS=1)
endif()
cmake_path(SET rma_pc_dir ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH rma_pc_prefix ${rma_pc_dir} ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" rma_pc_prefix ${rma_pc_prefix})
configure_file(cmake/rma.pc.in ${CMAKE_CURRENT_BINARY_DIR}/rma.pc @ONLY)
rma_install(FILES ${CMAKE_CURRENT_BINARY_DIR}/rma.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# The reference of the public headers, with the guide: BUILD/reference/html/index.html.
if(RMA_DOXYGEN)
  configure_file(docs/Doxyfile.in ${CMAKE_CURRENT_BINARY_DIR}/Doxyfile @ONLY)
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/reference)
  add_custom_target(reference COMMAND ${RMA_DOXYGEN} ${CMAKE_CURRENT_BINARY_DIR}/Doxyfile VERBATIM)
endif()

# What an installation has put anywhere is taken away by the list that it has written.
if(PROJECT_IS_TOP_LEVEL)
  add_custom_target(uninstall VERBATIM COMMAND ${CMAKE_COMMAND}
    -DMANIFEST=${CMAKE_CURRENT_BINARY_DIR}/install_manifest.txt -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/Uninstall.cmake)
endif()
