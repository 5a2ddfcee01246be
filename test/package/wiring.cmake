# The package tests: each case of run.py is the test package-<case>.  What they use of installed libraries is built once, by
# package-install.  Long ones have the label package-long, and run with `ctest -C long` only.
execute_process(COMMAND ${MI_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/run.py --list
  OUTPUT_VARIABLE mi_package_cases RESULT_VARIABLE mi_package_status)
if(NOT mi_package_status EQUAL 0)
  message(FATAL_ERROR "test/package/run.py --list failed")
endif()
file(GLOB mi_package_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.py)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${mi_package_sources})

string(REGEX MATCHALL "[^\n]+" mi_package_cases "${mi_package_cases}")
foreach(line IN LISTS mi_package_cases)
  separate_arguments(line)
  list(GET line 0 name)
  list(GET line 1 label)
  list(GET line 2 timeout)
  list(GET line 3 installs)
  set(configurations)
  if(label STREQUAL "package-long")
    set(configurations CONFIGURATIONS long)
  endif()
  add_test(NAME package-${name} ${configurations} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    COMMAND ${MI_PYTHON} test/package/run.py --installed --compiler ${CMAKE_C_COMPILER}
      --build-dir ${PROJECT_BINARY_DIR}/package ${name})
  set_tests_properties(package-${name} PROPERTIES LABELS ${label} TIMEOUT ${timeout} SKIP_RETURN_CODE 77)
  if(name STREQUAL "install")
    set_tests_properties(package-${name} PROPERTIES FIXTURES_SETUP package)
  elseif(installs)
    set_tests_properties(package-${name} PROPERTIES FIXTURES_REQUIRED package)
  endif()
endforeach()
