# The files that `cmake --install` copies, and the files for find_package(mimalloc) and pkg-config.
#
#                           default                     MI_INSTALL_TOPLEVEL
#   shared library          lib/                        lib/
#   static library, object  lib/mimalloc-2.4/           lib/
#   headers                 include/mimalloc-2.4/       include/
#   CMake files             lib/cmake/mimalloc-2.4/     lib/cmake/mimalloc/
#   mimalloc.pc             lib/pkgconfig/              lib/pkgconfig/
#   LICENSE                 share/doc/mimalloc-2.4/     share/doc/mimalloc/
#
# With MI_NAME_SUFFIX, each mimalloc in these names is followed by that suffix, so that nothing has the name of a file of another
# implementation.  find_package(mimalloc) finds it all the same.
#
# The shared library's names have versions in both layouts, so levels 2 and 3 can be installed side by side.  Then the link
# libmimalloc.so and mimalloc.pc are those of the later installation.
include(GNUInstallDirs)

set(mi_versioned_name mimalloc${MI_NAME_SUFFIX}-${mi_version})
if(MI_INSTALL_TOPLEVEL)
  set(mi_install_objectdir  ${CMAKE_INSTALL_LIBDIR})
  set(mi_install_includedir ${CMAKE_INSTALL_INCLUDEDIR})
  set(mi_install_cmakedir   ${CMAKE_INSTALL_LIBDIR}/cmake/mimalloc${MI_NAME_SUFFIX})
  set(mi_install_docdir     ${CMAKE_INSTALL_DATAROOTDIR}/doc/mimalloc${MI_NAME_SUFFIX})
else()
  set(mi_install_objectdir  ${CMAKE_INSTALL_LIBDIR}/${mi_versioned_name})
  set(mi_install_includedir ${CMAKE_INSTALL_INCLUDEDIR}/${mi_versioned_name})
  set(mi_install_cmakedir   ${CMAKE_INSTALL_LIBDIR}/cmake/${mi_versioned_name})
  set(mi_install_docdir     ${CMAKE_INSTALL_DATAROOTDIR}/doc/${mi_versioned_name})
endif()

set(mi_installed_targets)
if(MI_BUILD_SHARED)
  install(TARGETS mimalloc EXPORT mimalloc
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} INCLUDES DESTINATION ${mi_install_includedir})
  list(APPEND mi_installed_targets mimalloc)
endif()
if(MI_BUILD_STATIC)
  install(TARGETS mimalloc-static EXPORT mimalloc
    ARCHIVE DESTINATION ${mi_install_objectdir} INCLUDES DESTINATION ${mi_install_includedir})
  list(APPEND mi_installed_targets mimalloc-static)
endif()
if(MI_BUILD_OBJECT)
  install(FILES $<TARGET_OBJECTS:mimalloc-obj> DESTINATION ${mi_install_objectdir}
    RENAME ${mi_library_name}${CMAKE_C_OUTPUT_EXTENSION})
endif()
install(FILES LICENSE DESTINATION ${mi_install_docdir})

# The default level of the installed header is that of the library.
set(mi_installed_headers ${mi_public_headers})
if(NOT MI_API_LEVEL EQUAL 2)
  file(READ include/mimalloc.h header)
  string(REGEX REPLACE "(# *define +MI_API_LEVEL +)2" "\\1${MI_API_LEVEL}" leveled "${header}")
  if(leveled STREQUAL header)
    message(FATAL_ERROR "include/mimalloc.h has no line '#define MI_API_LEVEL 2' to replace.")
  endif()
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/installed/mimalloc.h.new "${leveled}")
  configure_file(${CMAKE_CURRENT_BINARY_DIR}/installed/mimalloc.h.new ${CMAKE_CURRENT_BINARY_DIR}/installed/mimalloc.h COPYONLY)
  list(REMOVE_ITEM mi_installed_headers include/mimalloc.h)
  list(APPEND mi_installed_headers ${CMAKE_CURRENT_BINARY_DIR}/installed/mimalloc.h)
endif()
install(FILES ${mi_installed_headers} DESTINATION ${mi_install_includedir})

# ---- find_package -------------------------------------------------------------------------------------------------------

include(CMakePackageConfigHelpers)
set(MI_PACKAGE_LIBDIR    ${CMAKE_INSTALL_LIBDIR})
set(MI_PACKAGE_OBJECTDIR ${mi_install_objectdir})
set(MI_PACKAGE_INCLUDEDIR ${mi_install_includedir})
configure_package_config_file(cmake/mimalloc-config.cmake.in mimalloc-config.cmake
  INSTALL_DESTINATION ${mi_install_cmakedir}
  PATH_VARS MI_PACKAGE_LIBDIR MI_PACKAGE_OBJECTDIR MI_PACKAGE_INCLUDEDIR
  NO_CHECK_REQUIRED_COMPONENTS_MACRO)
configure_file(cmake/mimalloc-config-version.cmake.in mimalloc-config-version.cmake @ONLY)
# The list of targets first: where it takes the place of another one, CMake removes the files whose names begin as its own does.
if(mi_installed_targets)
  install(EXPORT mimalloc DESTINATION ${mi_install_cmakedir})
endif()
install(FILES
  ${CMAKE_CURRENT_BINARY_DIR}/mimalloc-config.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/mimalloc-config-version.cmake
  DESTINATION ${mi_install_cmakedir})

# ---- pkg-config -----------------------------------------------------------------------------------------------------------

# ${prefix} is relative to the file, so that a tree that was moved, or installed with DESTDIR, still works.
function(mi_pc_path result path)
  if(IS_ABSOLUTE "${path}")
    set(${result} "${path}" PARENT_SCOPE)
  else()
    set(${result} "\${prefix}/${path}" PARENT_SCOPE)
  endif()
endfunction()
mi_pc_path(mi_pc_libdir "${CMAKE_INSTALL_LIBDIR}")
mi_pc_path(mi_pc_objectdir "${mi_install_objectdir}")
mi_pc_path(mi_pc_includedir "${mi_install_includedir}")
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(mi_pc_prefix "${CMAKE_INSTALL_PREFIX}")
else()
  file(RELATIVE_PATH mi_pc_up "/p/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/p/")
  string(REGEX REPLACE "/$" "" mi_pc_up "${mi_pc_up}")
  set(mi_pc_prefix "\${pcfiledir}/${mi_pc_up}")
endif()
set(mi_pc_private)
foreach(library IN LISTS mi_libraries)
  string(APPEND mi_pc_private " -l${library}")
endforeach()
if(MI_USE_CXX) # a C compiler that links the static library does not know of the C++ runtime
  foreach(library IN LISTS CMAKE_CXX_IMPLICIT_LINK_LIBRARIES)
    if(library MATCHES "^(stdc\\+\\+|c\\+\\+)$")
      string(APPEND mi_pc_private " -l${library}")
    endif()
  endforeach()
endif()
# If there is a shared library, the command line for it must not have the directory of the static one: pkg-config leaves out
# -L/usr/lib, and the linker would then see the static library only.
set(mi_pc_flags)
if(mi_static_link_flags)
  set(mi_pc_flags " ${mi_static_link_flags}")
endif()
set(mi_pc_libs "-L\${objectdir}${mi_pc_flags} -l${mi_library_name}${mi_pc_private}")
set(mi_pc_libs_private)
if(MI_BUILD_SHARED)
  set(mi_pc_libs "-L\${libdir} -l${mi_library_name}")
  set(mi_pc_libs_private "${mi_pc_flags}${mi_pc_private}")
  if(NOT MI_INSTALL_TOPLEVEL)
    set(mi_pc_libs_private " -L\${objectdir}${mi_pc_flags}${mi_pc_private}")
  endif()
elseif(NOT MI_BUILD_STATIC)
  set(mi_pc_libs "\${objectdir}/${mi_library_name}${CMAKE_C_OUTPUT_EXTENSION}${mi_pc_private}")
endif()
configure_file(cmake/mimalloc.pc.in mimalloc.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/mimalloc.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
  RENAME mimalloc${MI_NAME_SUFFIX}.pc)
