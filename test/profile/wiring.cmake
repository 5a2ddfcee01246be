# Programs that get a heap profile by their environment or a signal, and what pprof reads of it, labelled preload.  Included from
# test/CMakeLists.txt.
if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND TARGET mimalloc AND NOT mi_sanitize_flags AND NOT MI_TRACK_VALGRIND AND NOT MI_LIBC_MUSL
   AND MI_OVERRIDE AND NOT CMAKE_CROSSCOMPILING)
  find_package(Python3 COMPONENTS Interpreter)
  add_executable(test-profile-program ${CMAKE_CURRENT_LIST_DIR}/program.c)
  target_compile_options(test-profile-program PRIVATE ${mi_test_warnings} -g -O1 -fno-builtin)
  set_target_properties(test-profile-program PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test)
  add_test(NAME preload-profile COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/run.py
    --library $<TARGET_FILE:mimalloc> --program $<TARGET_FILE:test-profile-program>)
  set_tests_properties(preload-profile PROPERTIES LABELS preload TIMEOUT 300)
endif()
