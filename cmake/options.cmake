# Options, and what each adds to mi_defines or mi_flags (cmake/flags.cmake adds the rest).

option(MI_OVERRIDE          "Also define malloc, free, operator new, ... under their standard names" ON)
option(MI_GUARDED           "Guard one block in 4000 by default (MIMALLOC_GUARDED_SAMPLE_RATE)" OFF)
option(MI_XMALLOC           "Abort when memory cannot be had instead of returning NULL" OFF)
option(MI_SHOW_ERRORS       "Print errors and warnings by default (MIMALLOC_SHOW_ERRORS=1)" OFF)
option(MI_NO_THP            "Forbid transparent huge pages by default (MIMALLOC_ALLOW_THP=0)" OFF)

option(MI_DEBUG             "Check what callers promise (MI_DEBUG=1)" OFF)
option(MI_DEBUG_INTERNAL    "Also check internal invariants (MI_DEBUG=2); the default with CMAKE_BUILD_TYPE=Debug" OFF)
option(MI_DEBUG_FULL        "Also check the expensive ones (MI_DEBUG=3)" OFF)
option(MI_DEBUG_TSAN        "Build under the thread sanitizer" OFF)
option(MI_DEBUG_UBSAN       "Build under the undefined behaviour sanitizer" OFF)
option(MI_TRACK_ASAN        "Build under the address sanitizer" OFF)

option(MI_USE_CXX           "Compile the library as C++" OFF)
option(MI_NO_USE_CXX        "Never compile the library as C++, whatever MI_USE_CXX says" OFF)
option(MI_LOCAL_DYNAMIC_TLS "Thread-local storage that works in a library opened with dlopen" OFF)
option(MI_LIBC_MUSL         "The C library is musl" OFF)
set(MI_EXTRA_CPPDEFS ""     CACHE STRING "More definitions for all targets, as in \"A=1;B=2\"")

option(MI_BUILD_SHARED      "Build the shared library, target mimalloc" ON)
option(MI_BUILD_STATIC      "Build the static library, target mimalloc-static" ON)
option(MI_BUILD_OBJECT      "Build the object, target mimalloc-obj and mimalloc.o" ON)
option(MI_BUILD_TESTS       "Build the tests" ${mi_is_top_level})
option(MI_INSTALL_TOPLEVEL  "Install static library, object, headers and CMake files in unversioned directories" OFF)
option(MI_DEV_WARNINGS      "For the project's own developers: many warnings, all of them errors" OFF)

# An option that would do nothing must not look as if it did something.  First those that promise a behaviour:
foreach(name MI_SECURE MI_SECURE_FULL MI_PADDING MI_TRACK_VALGRIND MI_TRACK_ETW)
  if(${name})
    message(FATAL_ERROR "${name} is not available in this version.")
  endif()
endforeach()
# ... and those that are about speed, or about listings.
foreach(name MI_OPT_ARCH MI_OPT_SIMD MI_SEE_ASM MI_SKIP_COLLECT_ON_EXIT MI_USE_LIBATOMIC MI_TLS_MODEL_LOCAL
             MI_TLS_MODEL_PTHREADS MI_TLS_RECURSE_GUARD)
  if(${name})
    message(WARNING "${name} has no effect in this version.")
  endif()
endforeach()
# Accepted because they ask for what is so anyway: MI_NO_PADDING, MI_NO_OPT_ARCH, MI_FREE_IS_CHECKED; and those for
# other systems (MI_OSX_..., MI_WIN_...).
if(MI_CHECK_FULL)
  message(DEPRECATION "MI_CHECK_FULL is called MI_DEBUG_FULL now.")
  set(MI_DEBUG_FULL ON)
endif()

if(MI_NO_USE_CXX)
  set(MI_USE_CXX OFF)
endif()
