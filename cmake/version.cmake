# The level of the interface, and the version.  The public header has one line with the version of each level.
# For include() before project(); sets mi_version (major.minor), mi_version_major, _minor, _patch, _next.

# option() has no strings.  As with option(), a plain variable of an enclosing project has priority.
if(NOT DEFINED MI_API_LEVEL)
  set(MI_API_LEVEL 2 CACHE STRING "Level of the interface: 2, or 3 (version 3.4, soname 3)")
  set_property(CACHE MI_API_LEVEL PROPERTY STRINGS 2 3)
endif()
if(NOT MI_API_LEVEL MATCHES "^[23]$")
  message(FATAL_ERROR "MI_API_LEVEL is ${MI_API_LEVEL}; it must be 2 or 3.")
endif()

set(mi_version_number)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS include/mimalloc.h)
file(STRINGS include/mimalloc.h mi_version_lines REGEX "^ *# *define +MI_MALLOC_VERSION +[0-9]+")
foreach(line IN LISTS mi_version_lines)
  string(REGEX REPLACE "^ *# *define +MI_MALLOC_VERSION +([0-9]+).*$" "\\1" number "${line}")
  math(EXPR level "${number} / 10000")
  if(level EQUAL MI_API_LEVEL)
    set(mi_version_number ${number})
  endif()
endforeach()
if(NOT mi_version_number)
  message(FATAL_ERROR "include/mimalloc.h has no MI_MALLOC_VERSION for MI_API_LEVEL=${MI_API_LEVEL}.")
endif()

math(EXPR mi_version_major "${mi_version_number} / 10000")
math(EXPR mi_version_minor "${mi_version_number} / 100 % 100")
math(EXPR mi_version_patch "${mi_version_number} % 100")
math(EXPR mi_version_next "${mi_version_major} + 1")
set(mi_version ${mi_version_major}.${mi_version_minor})
