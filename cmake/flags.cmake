# Turns options into mi_defines, mi_flags, mi_link_flags and mi_libraries for all targets of the library, and mi_library_name.
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)

# WebAssembly, and systems that bring their own prim, have no shared libraries; and their addresses are memory.
set(mi_is_wasm OFF)
if(CMAKE_SYSTEM_NAME MATCHES "^(WASI|Emscripten)$")
  set(mi_is_wasm ON)
endif()
set(mi_is_bare ${mi_is_wasm})
if(MI_PRIM_CUSTOM OR CMAKE_SYSTEM_NAME STREQUAL "Generic")
  set(MI_PRIM_CUSTOM ON)
  set(mi_is_bare ON)
endif()
set(mi_is_relocatable ON)
if(mi_is_bare)
  set(mi_is_relocatable OFF)
endif()
if(mi_is_bare AND MI_BUILD_SHARED)
  message(STATUS "MI_BUILD_SHARED is switched off: ${CMAKE_SYSTEM_NAME} has no shared libraries, or they cannot replace malloc")
  set(MI_BUILD_SHARED OFF)
endif()

set(mi_defines ${MI_EXTRA_CPPDEFS})
if(MI_PRIM_CUSTOM)
  list(APPEND mi_defines MI_PRIM_CUSTOM=1)
endif()
set(mi_flags)
set(mi_link_flags)
set(mi_libraries)

# ---- definitions ------------------------------------------------------------------------------------------------------

# A generator of several configurations has no build type here: each configuration decides when it is built.
string(TOLOWER "${CMAKE_BUILD_TYPE}" mi_build_type)
if(CMAKE_CONFIGURATION_TYPES OR mi_build_type STREQUAL "")
  set(mi_build_type "none")
endif()
set(mi_is_release OFF)
if(mi_build_type MATCHES "^(release|relwithdebinfo|minsizerel|none)$")
  set(mi_is_release ON)
endif()

# Definitions that depend on the level of checks.  mimalloc-test has its own.
set(mi_level_defines)
if(MI_NO_DEBUG)
  list(APPEND mi_level_defines MI_DEBUG=0)
elseif(MI_DEBUG_FULL)
  list(APPEND mi_level_defines MI_DEBUG=3)
elseif(MI_DEBUG_INTERNAL OR mi_build_type STREQUAL "debug")
  list(APPEND mi_level_defines MI_DEBUG=2)
elseif(CMAKE_CONFIGURATION_TYPES)
  list(APPEND mi_level_defines $<$<CONFIG:Debug>:MI_DEBUG=2>)
  if(MI_DEBUG)
    list(APPEND mi_level_defines $<$<NOT:$<CONFIG:Debug>>:MI_DEBUG=1>)
  endif()
elseif(MI_DEBUG)
  list(APPEND mi_level_defines MI_DEBUG=1)
endif()
if(CMAKE_CONFIGURATION_TYPES)
  list(APPEND mi_level_defines $<$<NOT:$<CONFIG:Debug>>:MI_BUILD_RELEASE>)
  list(APPEND mi_defines MI_CMAKE_BUILD_TYPE=$<LOWER_CASE:$<CONFIG>>)
else()
  if(mi_is_release)
    list(APPEND mi_level_defines MI_BUILD_RELEASE)
  endif()
  list(APPEND mi_defines MI_CMAKE_BUILD_TYPE=${mi_build_type})
endif()

# Definitions that change internal headers, so that tests of internals need them too.
set(mi_feature_defines)
if(MI_SECURE_FULL)
  list(APPEND mi_feature_defines MI_SECURE=5)
elseif(MI_SECURE)
  list(APPEND mi_feature_defines MI_SECURE=4)
endif()
if(MI_NO_PADDING)
  list(APPEND mi_feature_defines MI_PADDING=0)
elseif(MI_PADDING)
  list(APPEND mi_feature_defines MI_PADDING=1)
endif()
foreach(name MI_GUARDED MI_MEMORY_TAGGING MI_MIN_ALIGN_8 MI_TRACK_VALGRIND MI_TRACK_ASAN MI_TRACK_ETW)
  if(${name} AND (WIN32 OR NOT name STREQUAL "MI_TRACK_ETW"))
    list(APPEND mi_feature_defines ${name}=1)
  endif()
endforeach()
# What finds emulated variables allocates, and the compiler tells nobody that it emulates them.
get_directory_property(mi_directory_options COMPILE_OPTIONS)
if("${CMAKE_C_FLAGS} ${CMAKE_CXX_FLAGS} ${mi_directory_options}" MATCHES "-femulated-tls" AND NOT MI_TLS_MODEL_PTHREADS)
  message(STATUS "MI_TLS_MODEL_PTHREADS is switched on: with -femulated-tls the first use of a thread-local variable allocates")
  set(MI_TLS_MODEL_PTHREADS ON)
endif()
if(MI_TLS_MODEL_PTHREADS)
  list(APPEND mi_feature_defines MI_LOCAL_BY_KEY=1 MI_NO_IFUNC=1)
endif()
# Is this a variant of the usual build?  Tests of counts, sizes and packages run in the usual build only.
set(mi_is_variant OFF)
if(mi_feature_defines OR NOT MI_API_LEVEL EQUAL 2)
  set(mi_is_variant ON)
endif()
if(MI_TRACK_USDT)
  list(APPEND mi_feature_defines MI_TRACK_USDT=1)
endif()

foreach(name MI_XMALLOC MI_SHOW_ERRORS MI_LIBC_MUSL)
  if(${name})
    list(APPEND mi_defines ${name}=1)
  endif()
endforeach()
if(APPLE)
  foreach(name MI_OSX_INTERPOSE MI_OSX_ZONE)
    list(APPEND mi_defines ${name}=$<BOOL:${${name}}>)
  endforeach()
endif()
if(MI_NO_THP)
  list(APPEND mi_defines MI_DEFAULT_ALLOW_THP=0)
endif()

# ---- code generation --------------------------------------------------------------------------------------------------

list(APPEND mi_flags -fvisibility=hidden)
# std::bad_alloc is thrown through frames of the library (src/api/cxx.c).  Some targets have no unwind tables by default.
if(NOT mi_is_wasm) # there they are not known to C, and not to all runtimes
  list(APPEND mi_flags -fexceptions)
endif()
# The compiler must not replace malloc and memset in the library with a call of calloc, nor remove them.
list(APPEND mi_flags -fno-builtin-malloc)
# Exported functions call each other directly.  Programs that replace mi_malloc alone are not supported.
check_c_compiler_flag(-fno-semantic-interposition mi_has_no_interposition)
if(mi_has_no_interposition AND NOT WIN32 AND NOT mi_is_bare)
  list(APPEND mi_flags -fno-semantic-interposition)
endif()
if(MI_OPT_ARCH)
  if(NOT mi_is_release)
    message(STATUS "MI_OPT_ARCH is for optimised builds, and is ignored in this one.")
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    list(APPEND mi_flags -march=haswell)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$")
    list(APPEND mi_flags -march=armv8.1-a)
  else()
    message(WARNING "MI_OPT_ARCH has no effect: it has no flags for ${CMAKE_SYSTEM_PROCESSOR}.")
  endif()
endif()
if(MI_SEE_ASM)
  list(APPEND mi_flags -save-temps=obj)
endif()
if(CMAKE_SIZEOF_VOID_P EQUAL 4 AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
  list(APPEND mi_flags -Wno-psabi) # GCC tells of each atomic field whose place has changed once
endif()
if(WIN32 AND CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_SIZEOF_VOID_P EQUAL 8)
  list(APPEND mi_flags -mcmodel=small) # variables of other sources have a constant address (src/prim/local.h)
endif()
if(WIN32)
  list(APPEND mi_link_flags -static-libgcc) # no DLLs but those of the system
elseif(NOT APPLE AND NOT mi_is_wasm)
  # nodelete: threads that outlive a dlclose still have the exit hook, and their blocks.
  list(APPEND mi_link_flags -Wl,--hash-style=gnu -Wl,-z,nodelete)
  include(cmake/text-order.cmake)
  mi_text_order(mi_order_flags mi_order_link_flags)
endif()

# initial-exec: one load finds the thread's theap, without a call, which might allocate.  The price is that a library opened
# with dlopen takes 32 bytes of the small static TLS reserve of the process.  local-dynamic costs a call instead
# (docs/decisions/019-thread-local-storage.md).
set(mi_tls_shared initial-exec)
set(mi_tls_static initial-exec)
if(MI_LIBC_MUSL)
  set(mi_tls_static local-dynamic)
endif()
if(MI_LOCAL_DYNAMIC_TLS)
  set(mi_tls_shared local-dynamic)
  set(mi_tls_static local-dynamic)
  # What finds them may not be called yet while the library is relocated (src/heap/thread.c).
  list(APPEND mi_defines MI_NO_IFUNC=1)
endif()

# -O3 inlines and unrolls code that runs once per page.  The text grows by several OS pages, each a page fault at the start
# of every process, and no benchmark gains.  Only CMake's default value is replaced.
if(CMAKE_C_FLAGS_RELEASE STREQUAL "-O3 -DNDEBUG")
  set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")
endif()
if(MI_USE_CXX AND CMAKE_CXX_FLAGS_RELEASE STREQUAL "-O3 -DNDEBUG")
  set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
endif()

# ---- sanitizers -------------------------------------------------------------------------------------------------------

set(mi_sanitize_flags)
if(MI_DEBUG_TSAN)
  list(APPEND mi_sanitize_flags -fsanitize=thread -O1 -g)
  if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    list(APPEND mi_sanitize_flags -Wno-tsan) # GCC warns of fences, which this sanitizer does not know
  endif()
endif()
if(MI_DEBUG_UBSAN)
  list(APPEND mi_sanitize_flags -fsanitize=undefined -fno-sanitize-recover=all -g)
endif()
if(MI_TRACK_ASAN)
  list(APPEND mi_sanitize_flags -fsanitize=address -g)
endif()
if(mi_sanitize_flags)
  list(APPEND mi_sanitize_flags -fno-omit-frame-pointer)
endif()
# The sanitizers' own malloc must stay in place, or they would see nothing.
if((MI_TRACK_ASAN OR MI_DEBUG_TSAN OR CMAKE_C_FLAGS MATCHES "-fsanitize=[a-z,-]*(address|thread|memory)") AND MI_OVERRIDE)
  message(STATUS "MI_OVERRIDE is switched off under this sanitizer, which has a malloc of its own")
  set(MI_OVERRIDE OFF)
endif()

# A program that GCC optimises as a whole (-flto) names no function that the compiler knows, as malloc, until it is compiled: too
# late for a member of a static library to be taken.
set(mi_static_link_flags)
if(MI_OVERRIDE AND NOT WIN32 AND NOT APPLE AND NOT mi_is_bare)
  set(mi_static_link_flags -Wl,-u,malloc)
endif()

# ---- warnings ---------------------------------------------------------------------------------------------------------

set(mi_warnings)
if(MI_DEV_WARNINGS)
  set(mi_warnings -Werror -Wall -Wextra -Wshadow -Wundef -Wvla -Wpointer-arith -Wwrite-strings -Wformat=2
    -Wno-format-nonliteral -Wimplicit-fallthrough -Wconversion -Wdouble-promotion
    $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes> $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes>
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-missing-field-initializers>) # {0} is fine in C
elseif(mi_is_top_level)
  set(mi_warnings -Wall -Wextra)
endif()

# ---- libraries --------------------------------------------------------------------------------------------------------

# In current C libraries threads and atomics need no library of their own.
if(mi_has_threads)
  find_package(Threads REQUIRED)
else()
  add_library(Threads::Threads INTERFACE IMPORTED)
endif()
if(CMAKE_THREAD_LIBS_INIT AND NOT WIN32)
  list(APPEND mi_libraries pthread)
endif()
# For some processors (RISC-V before GCC 13) compilers leave operations on single bytes to libatomic.
check_c_source_compiles("
  #include <stdatomic.h>
  #include <stdint.h>
  static _Atomic(uint64_t) word;
  static _Atomic(uint8_t) byte;
  int main(int argc, char** argv) {
    uint8_t expected = (uint8_t)argc;
    (void)argv;
    atomic_exchange(&byte, (uint8_t)argc);
    return (int)atomic_fetch_add(&word, (uint64_t)argc) + atomic_compare_exchange_strong(&byte, &expected, 1);
  }" mi_needs_no_libatomic)
if(NOT mi_needs_no_libatomic)
  list(APPEND mi_libraries atomic)
endif()

# ---- name -------------------------------------------------------------------------------------------------------------

set(mi_library_name mimalloc${MI_NAME_SUFFIX})
if(MI_SECURE)
  string(APPEND mi_library_name -secure)
endif()
if(MI_TRACK_VALGRIND)
  string(APPEND mi_library_name -valgrind)
endif()
if(MI_TRACK_ASAN)
  string(APPEND mi_library_name -asan)
endif()
if(NOT mi_is_release)
  string(APPEND mi_library_name -${mi_build_type})
endif()
