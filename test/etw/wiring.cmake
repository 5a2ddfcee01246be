# Events for Event Tracing for Windows, labelled etw.  Included from test/CMakeLists.txt.
#
#   etw-events    the events that a library writes; built for Windows
#   etw-summary   tools/etw/summary.py, the manifest and the profile; in the release build
if(WIN32 AND NOT mi_sanitize_flags AND NOT MI_USE_CXX)
  add_library(mimalloc-etw SHARED ${PROJECT_SOURCE_DIR}/src/static.c)
  mi_user_target(mimalloc-etw ${mi_tls_shared})
  target_compile_definitions(mimalloc-etw PRIVATE MI_SHARED_LIB MI_SHARED_LIB_EXPORT)
  if(NOT MI_TRACK_ETW)
    target_compile_definitions(mimalloc-etw PRIVATE MI_TRACK_ETW=1)
  endif()
  target_link_libraries(mimalloc-etw PRIVATE ${mi_libraries})
  target_link_options(mimalloc-etw PRIVATE ${mi_link_flags})
  add_executable(etw-events ${CMAKE_CURRENT_LIST_DIR}/events.c)
  target_compile_options(etw-events PRIVATE ${mi_test_warnings})
  set_target_properties(mimalloc-etw etw-events PROPERTIES PREFIX "" RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test)
  if(CMAKE_SIZEOF_VOID_P EQUAL 8) # the jumps that the test writes are those of x86-64
    add_test(NAME etw-events COMMAND etw-events mimalloc-etw.dll WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/test)
    set_tests_properties(etw-events PROPERTIES LABELS etw TIMEOUT 300)
  endif()
elseif(MI_PYTHON AND NOT CMAKE_CROSSCOMPILING AND mi_build_type STREQUAL "release" AND NOT mi_is_variant)
  add_test(NAME etw-summary COMMAND ${MI_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/run.py)
  set_tests_properties(etw-summary PROPERTIES LABELS etw TIMEOUT 300)
endif()
