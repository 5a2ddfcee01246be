# Options.  cmake/flags.cmake turns them into definitions and flags.
include(CheckCSourceCompiles)
include(CheckIncludeFile)

# A string option.  Like option(), it yields to a plain variable of an enclosing project.
macro(mi_string_option name default text)
  if(NOT DEFINED ${name})
    set(${name} "${default}" CACHE STRING "${text}")
  endif()
endmacro()

# ---- what the library does ----------------------------------------------------------------------------------------------

option(MI_OVERRIDE          "Also define malloc, free, operator new, ... under their standard names" ON)
option(MI_GUARDED           "Guard one block in 4000 by default (MIMALLOC_GUARDED_SAMPLE_RATE)" OFF)
option(MI_MEMORY_TAGGING    "Tag blocks, on AArch64 processors that have memory tags (MTE)" OFF)
option(MI_XMALLOC           "Abort instead of returning NULL when memory runs out" OFF)
option(MI_SHOW_ERRORS       "Print errors and warnings by default (MIMALLOC_SHOW_ERRORS=1)" OFF)
option(MI_NO_THP            "Forbid transparent huge pages by default (MIMALLOC_ALLOW_THP=0)" OFF)
option(MI_MIN_ALIGN_8       "Align small blocks to 8 bytes only" OFF)

set(mi_secure_default OFF)
if(mi_is_top_level AND CMAKE_BINARY_DIR MATCHES "[Ss]ecure$")
  set(mi_secure_default ON)
endif()
option(MI_SECURE            "Security checks (MI_SECURE=4); the default in a build directory named ...secure" ${mi_secure_default})
option(MI_SECURE_FULL       "All security checks, also the expensive ones (MI_SECURE=5)" OFF)
option(MI_PADDING           "Pad blocks, to detect overflows and to know exact sizes" OFF)
option(MI_NO_PADDING        "Never pad blocks; overrides MI_PADDING and all other options" OFF)

option(MI_DEBUG             "Check what callers promise (MI_DEBUG=1)" OFF)
option(MI_DEBUG_INTERNAL    "Also check internal invariants (MI_DEBUG=2); the default with CMAKE_BUILD_TYPE=Debug" OFF)
option(MI_DEBUG_FULL        "Also check expensive internal invariants (MI_DEBUG=3)" OFF)
option(MI_NO_DEBUG          "No checks, not even with CMAKE_BUILD_TYPE=Debug" OFF)
option(MI_DEBUG_TSAN        "Build under the thread sanitizer" OFF)
option(MI_DEBUG_UBSAN       "Build under the undefined behaviour sanitizer" OFF)
option(MI_TRACK_ASAN        "Build under the address sanitizer" OFF)
option(MI_TRACK_VALGRIND    "Tell valgrind about blocks" OFF)
mi_string_option(MI_TRACK_USDT AUTO "Probes for tracers (USDT): ON, OFF, or AUTO (if <sys/sdt.h> exists)")

# musl does not name itself.
set(mi_libc_is_musl OFF)
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  check_c_source_compiles("
    #include <features.h>
    #if defined(__GLIBC__) || defined(__UCLIBC__) || defined(__ANDROID__)
      #error no
    #endif
    int main(void) { return 0; }" mi_libc_has_no_name)
  if(mi_libc_has_no_name)
    set(mi_libc_is_musl ON)
  endif()
endif()

# ---- the build ----------------------------------------------------------------------------------------------------------

option(MI_USE_CXX           "Compile the library as C++" OFF)
option(MI_NO_USE_CXX        "Never compile the library as C++; overrides MI_USE_CXX" OFF)
option(MI_OPT_ARCH          "For newer processors only: x86-64 with AVX2 (Haswell), arm64 from version 8.1" OFF)
option(MI_NO_OPT_ARCH       "For all processors of the architecture; overrides MI_OPT_ARCH" OFF)
option(MI_SEE_ASM           "Keep the assembly beside the objects" OFF)
option(MI_LOCAL_DYNAMIC_TLS "Thread-local storage that works in a library opened with dlopen" OFF)
option(MI_TLS_MODEL_PTHREADS "Find thread-local variables by a key of thread-specific data; always on where others allocate" OFF)
option(MI_LIBC_MUSL         "The C library is musl; the default where it is" ${mi_libc_is_musl})
option(MI_PRIM_CUSTOM       "For a system that the library does not know, with functions that you supply" OFF)
mi_string_option(MI_EXTRA_CPPDEFS "" "More definitions for all targets, as in \"A=1;B=2\"")

option(MI_BUILD_SHARED      "Build the shared library, target mimalloc" ON)
option(MI_BUILD_STATIC      "Build the static library, target mimalloc-static" ON)
option(MI_BUILD_OBJECT      "Build the object, target mimalloc-obj and mimalloc.o" ON)
option(MI_BUILD_TESTS       "Build the tests" ${mi_is_top_level})
set(mi_minject_default OFF)
if(WIN32 AND mi_is_top_level)
  set(mi_minject_default ON)
endif()
option(MI_BUILD_MINJECT     "Build minject, which adds mimalloc.dll to executables of Windows" ${mi_minject_default})
option(MI_BUILD_BENCH       "Add the target bench, the benchmark programs; looks for a C++ compiler" ${MI_BUILD_TESTS})
option(MI_INSTALL_TOPLEVEL  "Install static library, object, headers and CMake files in unversioned directories" OFF)
mi_string_option(MI_NAME_SUFFIX "" "Added to the names of libraries, directories and mimalloc.pc, as in -compact; for distributions")
option(MI_DEV_WARNINGS      "Many warnings, all of them errors; for developers of this project" OFF)

# ---- options without effect here ------------------------------------------------------------------------------------------
#
# Clients' scripts set these for all systems at once, so they are accepted everywhere.  CMake names each that is set and has
# no effect.

function(mi_say_if_not mode name default text)
  if((${name} AND NOT ${default}) OR (${default} AND NOT ${name}))
    message(${mode} "${name} ${text}")
  endif()
endfunction()

option(MI_OSX_INTERPOSE "macOS: the shared library has a table by which the loader binds calls of malloc to it" ON)
option(MI_OSX_ZONE      "macOS: the library's malloc zone is the default one" ON)
foreach(name MI_OSX_INTERPOSE MI_OSX_ZONE)
  if(NOT APPLE)
    mi_say_if_not(STATUS ${name} ON "is for macOS, and ignored on other systems.")
  endif()
  mark_as_advanced(${name})
endforeach()

option(MI_WIN_REDIRECT "Windows" ON)
foreach(name MI_TRACK_ETW MI_WIN_USE_FIXED_TLS MI_WIN_DIRECT_TLS MI_WIN_INIT_USE_RAW_DLLMAIN MI_WIN_INIT_USE_TLS_DLLMAIN
             MI_WIN_USE_FLS)
  option(${name} "Windows" OFF)
  if(NOT WIN32)
    mi_say_if_not(STATUS ${name} OFF "is for Windows, and ignored on other systems.")
  endif()
  mark_as_advanced(${name})
endforeach()
if(NOT WIN32)
  mi_say_if_not(STATUS MI_WIN_REDIRECT ON "is for Windows, and ignored on other systems.")
endif()
mark_as_advanced(MI_WIN_REDIRECT)

option(MI_FREE_IS_CHECKED "Always on" OFF)
mi_say_if_not(STATUS MI_FREE_IS_CHECKED OFF "is always on: mi_free ignores pointers that do not come from this allocator.")
option(MI_TLS_MODEL_LOCAL "Always on" OFF)
mi_say_if_not(STATUS MI_TLS_MODEL_LOCAL OFF "is always on: the library uses a thread-local variable.")
option(MI_SKIP_COLLECT_ON_EXIT "Always on" OFF)
mi_say_if_not(STATUS MI_SKIP_COLLECT_ON_EXIT OFF "is always on: memory that is free when the process ends is left to the system.")
option(MI_TLS_RECURSE_GUARD "For systems where thread-local variables allocate" OFF)
mi_say_if_not(WARNING MI_TLS_RECURSE_GUARD OFF "has no effect here: thread-local variables work without allocating.")
option(MI_OPT_SIMD "No effect" OFF)
mi_say_if_not(WARNING MI_OPT_SIMD OFF "has no effect: there is no SIMD code; MI_OPT_ARCH lets the compiler generate some.")
option(MI_USE_LIBATOMIC "Deprecated" OFF)
mi_say_if_not(DEPRECATION MI_USE_LIBATOMIC OFF "has no effect: CMake checks whether libatomic is needed.")
option(MI_CHECK_FULL "Deprecated: MI_DEBUG_FULL" OFF)
mi_say_if_not(DEPRECATION MI_CHECK_FULL OFF "is called MI_DEBUG_FULL now.")
mark_as_advanced(MI_FREE_IS_CHECKED MI_TLS_MODEL_LOCAL MI_SKIP_COLLECT_ON_EXIT MI_TLS_RECURSE_GUARD MI_OPT_SIMD
                 MI_USE_LIBATOMIC MI_CHECK_FULL)

# ---- options that imply others -----------------------------------------------------------------------------------------------

if(MI_CHECK_FULL)
  set(MI_DEBUG_FULL ON)
endif()
if(MI_SECURE_FULL)
  set(MI_SECURE ON)
endif()
if(MI_NO_PADDING)
  set(MI_PADDING OFF)
endif()
if(MI_NO_OPT_ARCH)
  set(MI_OPT_ARCH OFF)
endif()
if(MI_NO_USE_CXX)
  set(MI_USE_CXX OFF)
endif()

if(MI_DEBUG_TSAN AND MI_TRACK_ASAN)
  message(FATAL_ERROR "MI_DEBUG_TSAN cannot be had with MI_TRACK_ASAN: compilers have one of these sanitizers at a time.")
endif()
if(MI_MEMORY_TAGGING)
  if(NOT (CMAKE_SYSTEM_NAME STREQUAL "Linux" AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$"))
    message(FATAL_ERROR "MI_MEMORY_TAGGING is for Linux on AArch64, not for ${CMAKE_SYSTEM_NAME} on ${CMAKE_SYSTEM_PROCESSOR}.")
  endif()
  if(MI_SECURE OR MI_PADDING OR MI_DEBUG OR MI_DEBUG_INTERNAL OR MI_DEBUG_FULL OR MI_MIN_ALIGN_8 OR CMAKE_BUILD_TYPE STREQUAL "Debug")
    message(FATAL_ERROR "MI_MEMORY_TAGGING is for release builds: it cannot be had with MI_SECURE, MI_PADDING, MI_DEBUG or MI_MIN_ALIGN_8.")
  endif()
endif()

if(MI_TRACK_VALGRIND)
  check_include_file(valgrind/memcheck.h mi_has_memcheck)
  if(NOT mi_has_memcheck)
    unset(mi_has_memcheck CACHE) # look again next time
    message(FATAL_ERROR "MI_TRACK_VALGRIND needs <valgrind/memcheck.h>, which is in the Debian package valgrind.")
  endif()
endif()
if(MI_TRACK_USDT)
  check_include_file(sys/sdt.h mi_has_sdt)
  if(NOT mi_has_sdt)
    if(NOT MI_TRACK_USDT STREQUAL "AUTO")
      unset(mi_has_sdt CACHE) # look again next time
      message(FATAL_ERROR "MI_TRACK_USDT needs <sys/sdt.h>, which is in the Debian package systemtap-sdt-dev.")
    endif()
    set(MI_TRACK_USDT OFF)
  endif()
endif()
