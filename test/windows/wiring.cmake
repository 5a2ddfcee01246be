# Tests on Windows.  Those that use only a little of POSIX get it from windows/posix, the others are skipped.
add_library(test-posix STATIC EXCLUDE_FROM_ALL windows/posix/posix.c)
target_compile_options(test-posix INTERFACE -include ${CMAKE_CURRENT_SOURCE_DIR}/windows/posix/posix.h)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_SIZEOF_VOID_P EQUAL 8)
  target_compile_options(test-posix INTERFACE -mcmodel=small) # as the library
endif()
target_compile_definitions(test-posix INTERFACE __USE_MINGW_ANSI_STDIO=1) # the formats of C99
target_link_options(test-posix INTERFACE -static) # no DLLs of the compiler

# What a test would need of another system; empty if it can run.
function(mi_windows_lacks result source)
  set(${result} "" PARENT_SCOPE)
  foreach(need "fork:sys/wait\\.h|fork\\(\\)|forks\\.h" "mmap:sys/mman\\.h" "limits of the kernel:sys/resource\\.h|linux/|sys/syscall\\.h"
               "users:grp\\.h" "processes of Linux:sys/prctl\\.h|sys/auxv\\.h|tasks\\.h|/proc/|os_pages\\.h" "dlopen:dlfcn\\.h"
               "keys whose destructors set them again, at which winpthreads hangs:PTHREAD_DESTRUCTOR_ITERATIONS"
               "objects that are thread_local, which the compiler's runtime frees before their destructors run:static thread_local"
               "environ:char\\*\\* environ|test_exec\\(|test_can_exec\\(" "a library that throws and catches exceptions:catch \\(|operators\\.h")
    string(REGEX MATCH "^([^:]*):(.*)$" matched "${need}")
    set(what "${CMAKE_MATCH_1}")
    file(STRINGS ${source} found REGEX "${CMAKE_MATCH_2}" LIMIT_COUNT 1)
    if(found)
      set(${result} "${what}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()

# What test-unload-contained.c loads.
if(TARGET mimalloc-static)
  add_library(test-contained SHARED windows/contained.c)
  set_target_properties(test-contained PROPERTIES PREFIX "" OUTPUT_NAME contained RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test)
  target_link_libraries(test-contained PRIVATE mimalloc-static)
  target_link_options(test-contained PRIVATE -static)
endif()
