# Which tests a system that lacks something can build and run: mi_test_lacks(source result) sets `result` to what the test
# lacks, or to nothing.  Sources say what they need by what they include and call.
# Under WASI, and Emscripten without threads, a thread runs to its end when it is made, and leaves no pages behind as
# one that ends does.

set(mi_platform_includes)
set(mi_platform_options)
set(mi_platform_libraries)
set(mi_platform_link_options)
set(mi_platform_lacks growing-memory)
if(CMAKE_SYSTEM_NAME STREQUAL "WASI")
  set(mi_platform_includes ${CMAKE_CURRENT_LIST_DIR}/wasi)
  set(mi_platform_options -D_WASI_EMULATED_SIGNAL -D_WASI_EMULATED_PROCESS_CLOCKS -Wno-format
    SHELL:-include ${CMAKE_CURRENT_LIST_DIR}/wasi/missing.h $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions>)
  set(mi_platform_libraries wasi-emulated-signal wasi-emulated-process-clocks)
  set(mi_platform_lacks mappings processes threads figures exceptions kinds environment names)
elseif(CMAKE_SYSTEM_NAME STREQUAL "Emscripten")
  set(mi_platform_options -Wno-format)
  set(mi_platform_link_options -sALLOW_MEMORY_GROWTH=1 -sEXIT_RUNTIME=1 -sTOTAL_STACK=1MB
    "SHELL:--pre-js ${CMAKE_CURRENT_LIST_DIR}/emscripten.js")
  set(mi_platform_link_options_modes-producer-consumer -sINITIAL_MEMORY=32MB) # it has large tables
  set(mi_platform_lacks mappings processes figures exceptions kinds environment)
  if(mi_has_threads) # a worker starts when the program's first thread goes back to JavaScript: that is not main
    list(APPEND mi_platform_link_options -sPROXY_TO_PTHREAD=1 -sENVIRONMENT=node,worker -sDEFAULT_PTHREAD_STACK_SIZE=256KB
      -Wno-pthreads-mem-growth)
    # These count what the whole process has, or look at messages, in which the first thread has no name: here main is in that one,
    # and workers wait for its threads.
    foreach(name api-heap-stats unit-theap unit-verify)
      set(mi_platform_link_options_${name} -sPROXY_TO_PTHREAD=0 -sPTHREAD_POOL_SIZE=10)
    endforeach()
  else()
    set(mi_platform_includes ${CMAKE_CURRENT_LIST_DIR}/emscripten)
    list(APPEND mi_platform_link_options -sENVIRONMENT=node)
    list(APPEND mi_platform_lacks threads)
  endif()
endif()

set(mi_needs_mappings "sys/mman.h|_mi_prim_(map|protect|resize|move_out|remap|hide)\\(|os_pages.h|mi_reserve_|/proc/|MIMALLOC_GUARDED")
set(mi_needs_processes "tasks.h|fork\\(|execve?\\(|test_exec\\(|prctl\\(|pipe\\(|sys/wait.h|forks.h|sys/resource.h")
set(mi_needs_threads "pthread_(barrier|cond|key|once|self|detach|setspecific)|std::thread|<thread>|sched_yield|sleep_ms|heap/pool.h|n_pooled")
set(mi_needs_figures "mi_process_info\\(") # of time and memory of the process
# Chunks of their own for each kind of pages, which the model of slices is made for, and memory that is purged.
set(mi_needs_kinds "slice_model.h|_mi_purge_keep\\(")
set(mi_needs_environment "extern char\\*\\* environ") # one that changes
set(mi_needs_names "pvalloc\\(size") # that its headers do not declare
set(mi_needs_growing-memory "memory_size\\(") # nowhere but in WebAssembly
set(mi_needs_exceptions "catch \\(|throw |_throws\\(")

# Bounds on resident memory cannot be checked: nothing goes back.
set(mi_platform_environment)
if(mi_is_bare)
  set(mi_platform_environment MI_TEST_NO_RSS=1)
endif()

function(mi_test_lacks source result)
  set(${result} "" PARENT_SCOPE)
  foreach(what IN LISTS mi_platform_lacks)
    file(STRINGS ${source} found REGEX "${mi_needs_${what}}" LIMIT_COUNT 1)
    if(found)
      set(${result} ${what} PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()
