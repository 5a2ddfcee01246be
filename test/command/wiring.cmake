# Tests of the command in python/, labelled command.  Included from test/CMakeLists.txt for release builds.
file(GLOB mi_command_tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/tests/test_*.py)
foreach(file IN LISTS mi_command_tests)
  get_filename_component(name ${file} NAME_WE)
  string(REGEX REPLACE "^test_" "" name ${name})
  mi_add_script(command-${name} command 300 ${MI_PYTHON} test/command/run.py ${file} --lib $<TARGET_FILE:mimalloc>)
endforeach()
