# The models as tests, labelled model.  Included from test/CMakeLists.txt.  They look at the sources, not at what was
# built, so that one build of several needs them.
if(Python3_EXECUTABLE)
  set(mi_model_python ${Python3_EXECUTABLE})
else()
  find_program(MI_PYTHON python3)
  mark_as_advanced(MI_PYTHON)
  set(mi_model_python ${MI_PYTHON})
endif()

if(NOT mi_model_python)
  message(STATUS "Skipped: model-bin, model-page-word, model-relacy need python3")
  return()
endif()

# Each takes 15 seconds on two processors that are otherwise idle.
add_test(NAME model-page-word COMMAND ${mi_model_python} ${CMAKE_CURRENT_LIST_DIR}/page_word_model.py --self-test)
set_tests_properties(model-page-word PROPERTIES LABELS model TIMEOUT 1800)

add_test(NAME model-bin COMMAND ${mi_model_python} ${CMAKE_CURRENT_LIST_DIR}/bin_model.py --self-test)
set_tests_properties(model-bin PROPERTIES LABELS model TIMEOUT 1800)

# Relacy needs g++; without it, or without Relacy (package relacy-dev), the test says so and counts as skipped.
find_program(MI_MODEL_CXX g++)
mark_as_advanced(MI_MODEL_CXX)
set(mi_model_compiler g++)
if(MI_MODEL_CXX)
  set(mi_model_compiler ${MI_MODEL_CXX})
endif()
add_test(NAME model-relacy COMMAND ${mi_model_python} ${CMAKE_CURRENT_LIST_DIR}/relacy/run.py
  --compiler ${mi_model_compiler})
set_tests_properties(model-relacy PROPERTIES LABELS model TIMEOUT 1800 SKIP_RETURN_CODE 77)
