# The one-bug programs, and the test that runs them under the library of this build, labelled bugs.  Included from
# test/CMakeLists.txt.  They are linked with libc only; test/bugs/table.toml has what must happen.
if(NOT MI_PYTHON)
  message(STATUS "Skipped: bugs need python3")
  return()
endif()

set(mi_bugs_mode release)
if(MI_SECURE_FULL)
  set(mi_bugs_mode full)
elseif(MI_SECURE)
  set(mi_bugs_mode secure)
elseif(mi_build_type STREQUAL "debug")
  set(mi_bugs_mode debug)
endif()

set(mi_bugs_dir ${PROJECT_BINARY_DIR}/test/bugs)
file(GLOB mi_bugs_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.c ${CMAKE_CURRENT_LIST_DIR}/*.cpp)
add_custom_target(bugs)
foreach(source IN LISTS mi_bugs_sources)
  get_filename_component(name ${source} NAME_WE)
  add_executable(bug-${name} ${source})
  # A compiler that optimises, or that knows malloc, removes the bugs.
  target_compile_options(bug-${name} PRIVATE ${mi_test_warnings} -O0 -fno-builtin -U_FORTIFY_SOURCE)
  target_link_libraries(bug-${name} PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
  set_target_properties(bug-${name} PROPERTIES
    C_STANDARD 11 C_EXTENSIONS ON CXX_STANDARD 17 CXX_EXTENSIONS ON
    OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${mi_bugs_dir})
  add_dependencies(bugs bug-${name})
endforeach()

mi_add_script(bugs-${mi_bugs_mode} bugs 600 ${MI_PYTHON} test/bugs/run.py check --mode ${mi_bugs_mode}
  --lib $<TARGET_FILE:mimalloc> --programs ${mi_bugs_dir})
mi_add_script(bugs-runner bugs 60 ${MI_PYTHON} test/bugs/test_run.py)
