# SPDX-License-Identifier: Apache-2.0
# cmake -DMANIFEST=install_manifest.txt -P Uninstall.cmake: removes the files that `cmake --install` has listed there.
if(NOT EXISTS "${MANIFEST}")
  message(FATAL_ERROR "uninstall: there is no ${MANIFEST}: nothing was installed from this build folder")
endif()
file(STRINGS "${MANIFEST}" installed)
foreach(file IN LISTS installed)
  set(path "$ENV{DESTDIR}${file}")
  if(EXISTS "${path}" OR IS_SYMLINK "${path}")
    message(STATUS "removed ${path}")
    file(REMOVE "${path}")
  endif()
endforeach()
