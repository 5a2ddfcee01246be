# The library under tools that watch memory (run.py), labelled tools.  Included from test/CMakeLists.txt.
#
#   build with MI_TRACK_VALGRIND    tools-valgrind-...    memcheck: bugs that it must find, programs in which it finds nothing
#   build with MI_TRACK_ASAN        tools-asan-...        the address sanitizer: the same bugs
#   release build                   tools-untracked       a library that knows nothing of valgrind runs under it
#                                   tools-probes-...      the probes for tracers (probes.py)
find_program(MI_PYTHON python3)
mark_as_advanced(MI_PYTHON)
if(NOT MI_PYTHON)
  message(STATUS "Skipped: tests of tools need python3")
  return()
endif()

# Those whose name ends in -all run with `ctest -C long` only.
function(mi_add_tools_test name timeout)
  set(configurations)
  if(name MATCHES "-all$")
    set(configurations CONFIGURATIONS long)
  endif()
  add_test(NAME tools-${name} ${configurations} COMMAND ${MI_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/tools/run.py ${ARGN})
  set_tests_properties(tools-${name} PROPERTIES LABELS tools TIMEOUT ${timeout} SKIP_RETURN_CODE 77)
endfunction()

# A program for run.py; `library` may be empty: then it knows nothing of ours.
function(mi_add_tools_program name source library)
  add_executable(tools-${name} tools/${source})
  target_include_directories(tools-${name} PRIVATE ${PROJECT_SOURCE_DIR}/include ${CMAKE_CURRENT_SOURCE_DIR})
  # What is wrong with them, compilers would say too; they are not to mend it.  A function that ends with free is to be in the
  # stack, too.
  target_compile_options(tools-${name} PRIVATE -fno-builtin -fno-optimize-sibling-calls -w -g -O1 ${mi_sanitize_flags})
  target_link_libraries(tools-${name} PRIVATE ${library} Threads::Threads)
  if(library)
    target_compile_definitions(tools-${name} PRIVATE MI_TEST_API=1 ${mi_feature_defines})
  endif()
  if(mi_sanitize_flags)
    target_link_options(tools-${name} PRIVATE ${mi_sanitize_flags})
  endif()
  set_target_properties(tools-${name} PROPERTIES
    C_STANDARD 11 C_EXTENSIONS ON CXX_STANDARD 17 CXX_EXTENSIONS ON RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test)
endfunction()

# ---- valgrind -----------------------------------------------------------------------------------------------------------

if(MI_TRACK_VALGRIND AND mi_can_preload)
  mi_add_tools_program(memcheck memcheck.c "")
  mi_add_tools_program(bugs bugs.c "")
  mi_add_tools_test(valgrind-preloaded 1200 valgrind
    --program $<TARGET_FILE:tools-memcheck> --preload $<TARGET_FILE:mimalloc>)
  mi_add_tools_test(valgrind-reports-preloaded 600 reports --tool memcheck
    --program $<TARGET_FILE:tools-bugs> --preload $<TARGET_FILE:mimalloc>)
  function(mi_add_memcheck_test how library)
    mi_add_tools_program(memcheck-${how} memcheck.c ${library})
    mi_add_tools_test(valgrind-${how} 1200 valgrind --program $<TARGET_FILE:tools-memcheck-${how}>)
  endfunction()
  mi_add_memcheck_test(shared mimalloc)
  if(TARGET mimalloc-static)
    mi_add_memcheck_test(static mimalloc-static)
  endif()
  if(TARGET mimalloc-obj)
    mi_add_memcheck_test(object $<TARGET_OBJECTS:mimalloc-obj>)
  endif()
  mi_add_tools_program(bugs-shared bugs.c mimalloc)
  mi_add_tools_test(valgrind-reports 600 reports --tool memcheck --program $<TARGET_FILE:tools-bugs-shared>)
  mi_add_tools_program(bugs-cxx bugs_cxx.cpp "")
  mi_add_tools_test(valgrind-reports-cxx 600 reports --tool memcheck --source bugs_cxx.cpp
    --program $<TARGET_FILE:tools-bugs-cxx> --preload $<TARGET_FILE:mimalloc>)
  add_library(tools-inject MODULE tools/inject.c)
  target_compile_options(tools-inject PRIVATE -fno-builtin -g -O1)
  mi_add_tools_test(valgrind-programs 600 valgrind-programs --lib $<TARGET_FILE:mimalloc> --inject $<TARGET_FILE:tools-inject>
    python3 perl cmake)
  mi_add_tools_test(valgrind-programs-all 3000 valgrind-programs --lib $<TARGET_FILE:mimalloc>)
  # Tests of ours that do nothing wrong, and do not look at memory or time, of which there is another amount here.
  foreach(name api-alignment api-basic api-cxx api-posix api-sizes api-realloc api-heap-alloc api-theap api-visit api-subproc
               api-stl api-pmr api-new-delete modes-aligned-free modes-exit modes-exit-static fuzz-fuzz-model
               stress-stress)
    if(TARGET test-${name}-shared)
      mi_add_tools_test(valgrind-own-${name} 1200 valgrind-own --program $<TARGET_FILE:test-${name}-shared>)
    endif()
  endforeach()
endif()

if(mi_can_preload AND mi_build_type STREQUAL "release" AND NOT mi_is_variant)
  mi_add_tools_test(untracked 900 valgrind-untracked --lib $<TARGET_FILE:mimalloc> perl python3 sqlite3 git)
endif()

# ---- tracers ------------------------------------------------------------------------------------------------------------

# They build libraries of their own: what the one at hand has depends on the machine.
if(mi_can_preload AND mi_build_type STREQUAL "release" AND NOT mi_is_variant)
  function(mi_add_probes_test name what)
    add_test(NAME tools-probes-${name} COMMAND ${MI_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/tools/probes.py ${what}
      --source ${PROJECT_SOURCE_DIR} --build-dir ${CMAKE_CURRENT_BINARY_DIR} --cmake ${CMAKE_COMMAND}
      --compiler ${CMAKE_C_COMPILER} --cxx-compiler ${CMAKE_CXX_COMPILER} ${ARGN})
    set_tests_properties(tools-probes-${name} PROPERTIES
      LABELS tools TIMEOUT 900 SKIP_RETURN_CODE 77 RESOURCE_LOCK probes)
  endfunction()
  mi_add_tools_program(traced traced.c "")
  mi_add_probes_test(list list)
  mi_add_probes_test(list-cxx list --cxx)
  mi_add_probes_test(hit hit --program $<TARGET_FILE:tools-traced>)
endif()

# ---- the address sanitizer ----------------------------------------------------------------------------------------------

if(MI_TRACK_ASAN AND TARGET mimalloc-static)
  mi_add_tools_program(bugs-asan bugs.c mimalloc-static)
  mi_add_tools_test(asan-reports 600 reports --tool asan --program $<TARGET_FILE:tools-bugs-asan>)
  mi_add_tools_program(bugs-asan-cxx bugs_cxx.cpp mimalloc-static)
  mi_add_tools_test(asan-reports-cxx 600 reports --tool asan --source bugs_cxx.cpp --program $<TARGET_FILE:tools-bugs-asan-cxx>)
  # A program that says malloc and means ours, with the shared library as users build it: without checks of its own.
  add_library(tools-asan-library SHARED ${PROJECT_SOURCE_DIR}/src/static.c)
  mi_target(tools-asan-library ${mi_tls_shared})
  target_compile_definitions(tools-asan-library PRIVATE MI_SHARED_LIB MI_SHARED_LIB_EXPORT ${mi_feature_defines})
  target_link_libraries(tools-asan-library PRIVATE ${mi_libraries})
  target_link_options(tools-asan-library PRIVATE ${mi_link_flags})
  mi_add_tools_program(bugs-asan-shared bugs.c "")
  target_compile_definitions(tools-bugs-asan-shared PRIVATE MI_TEST_OVERRIDE=1)
  target_link_libraries(tools-bugs-asan-shared PRIVATE tools-asan-library)
  mi_add_tools_test(asan-reports-shared 600 reports --tool asan --program $<TARGET_FILE:tools-bugs-asan-shared>)
endif()
