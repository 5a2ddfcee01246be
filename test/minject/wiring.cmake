# Tests of minject (run.py), labelled minject.  Included from test/CMakeLists.txt.
#
#   minject-made       files made by the test: each refusal, what is kept, what changes
#   minject-hostile    broken files
#   minject-programs   programs made by compilers for Windows; with `ctest -C long` only
#   minject-wine       programs that run; with `ctest -C long` only
#
# minject runs where it is built, so they are in one build only.  It is built here once more, with sanitizers.  Builds for Windows
# with wine at hand run minject-made and minject-wine with the minject of that system, and with the library.
if(WIN32 AND CMAKE_CROSSCOMPILING_EMULATOR MATCHES "wine" AND MI_PYTHON AND TARGET minject AND TARGET mimalloc)
  foreach(what made wine)
    add_test(NAME minject-${what} COMMAND ${MI_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/run.py ${what}
      --minject $<TARGET_FILE:minject> --dll $<TARGET_FILE:mimalloc>)
    set_tests_properties(minject-${what} PROPERTIES LABELS minject TIMEOUT 1200 SKIP_RETURN_CODE 77 RUN_SERIAL ON
      ENVIRONMENT WINEPREFIX=${PROJECT_BINARY_DIR}/wine)
  endforeach()
endif()
if(CMAKE_CROSSCOMPILING OR NOT MI_PYTHON OR NOT mi_build_type STREQUAL "release" OR mi_is_variant OR mi_sanitize_flags
   OR MI_USE_CXX)
  return()
endif()

include(CMakePushCheckState)
set(mi_minject_flags -fsanitize=address,undefined -fno-sanitize-recover=all)
cmake_push_check_state(RESET)
set(CMAKE_REQUIRED_FLAGS "-fsanitize=address,undefined")
check_c_source_compiles("int main(void) { return 0; }" mi_has_both_sanitizers)
cmake_pop_check_state()
if(NOT mi_has_both_sanitizers)
  message(STATUS "Tests of minject run without sanitizers, which this compiler does not have")
  set(mi_minject_flags)
endif()

set(mi_minject_dir ${PROJECT_SOURCE_DIR}/tools/minject)
add_executable(minject-checked ${mi_minject_dir}/file.c ${mi_minject_dir}/inject.c ${mi_minject_dir}/minject.c ${mi_minject_dir}/pe.c)
add_executable(minject-hostile ${CMAKE_CURRENT_LIST_DIR}/hostile.c
  ${mi_minject_dir}/file.c ${mi_minject_dir}/inject.c ${mi_minject_dir}/pe.c)
foreach(target minject-checked minject-hostile)
  target_compile_options(${target} PRIVATE ${mi_warnings} ${mi_minject_flags} -g)
  target_link_options(${target} PRIVATE ${mi_minject_flags})
  set_target_properties(${target} PROPERTIES
    C_STANDARD 11 C_EXTENSIONS OFF RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test)
endforeach()

function(mi_add_minject_test what timeout)
  add_test(NAME minject-${what} ${ARGN} COMMAND ${MI_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/minject/run.py ${what}
    --minject $<TARGET_FILE:minject-checked> --hostile $<TARGET_FILE:minject-hostile>)
  set_tests_properties(minject-${what} PROPERTIES LABELS minject TIMEOUT ${timeout} SKIP_RETURN_CODE 77
    ENVIRONMENT WINEPREFIX=${PROJECT_BINARY_DIR}/wine)
endfunction()
mi_add_minject_test(made 300)
mi_add_minject_test(hostile 300)
mi_add_minject_test(programs 600 CONFIGURATIONS long)
mi_add_minject_test(wine 1200 CONFIGURATIONS long)
