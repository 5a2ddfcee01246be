# The example of a system that brings its own prim is built and run, on the system at hand.
mi_add_script(platform-custom-prim platform 600 ${CMAKE_CTEST_COMMAND}
  --build-and-test ${PROJECT_SOURCE_DIR}/examples/custom-prim ${PROJECT_BINARY_DIR}/test/custom-prim
  --build-generator ${CMAKE_GENERATOR} --build-options -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER=${CMAKE_C_COMPILER}
  --test-command custom-prim)
