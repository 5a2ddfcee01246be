# The example of a system that brings its own prim is built and run, on the system at hand.
mi_add_script(platform-custom-prim platform 600 ${CMAKE_CTEST_COMMAND}
  --build-and-test ${PROJECT_SOURCE_DIR}/examples/custom-prim ${PROJECT_BINARY_DIR}/test/custom-prim
  --build-generator ${CMAKE_GENERATOR} --build-options -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER=${CMAKE_C_COMPILER}
  --test-command custom-prim)

# Memory that only grows, given by the test itself.
add_executable(platform-grown platforms/grown.c ${PROJECT_SOURCE_DIR}/src/prim/grown.c ${PROJECT_SOURCE_DIR}/src/prim/single.c
  ${PROJECT_SOURCE_DIR}/src/prim/plain.c ${PROJECT_SOURCE_DIR}/src/prim/inject.c
  ${PROJECT_SOURCE_DIR}/src/prim/lock.c)
target_compile_options(platform-grown PRIVATE ${mi_test_warnings})
target_compile_definitions(platform-grown PRIVATE MI_PRIM_CUSTOM=1 MI_LIBRARY_BUILD=1)
target_include_directories(platform-grown PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
set_target_properties(platform-grown PROPERTIES C_STANDARD 11 C_EXTENSIONS ON RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test)
mi_add_script(platform-grown platform 60 $<TARGET_FILE:platform-grown> 16) # the first piece begins at 16, modulo 32
mi_add_script(platform-grown-aligned platform 60 $<TARGET_FILE:platform-grown> 0)
