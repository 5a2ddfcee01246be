# The tests of the first calls once more, with the allocator as a part of the program: as the object file, and from the
# static library.  Included by test/CMakeLists.txt, from its directory.
set(mi_early_tests early-start ifunc)

function(mi_add_linked_test name suffix)
  set(target test-preload-01-${name}-${suffix})
  add_executable(${target} ${CMAKE_CURRENT_LIST_DIR}/preload/test-01-${name}.c ${ARGN})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/test)
  target_compile_options(${target} PRIVATE -fno-builtin-malloc)
  target_compile_definitions(${target} PRIVATE MI_TEST_LINKED=1)
  target_link_libraries(${target} PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
  set_target_properties(${target} PROPERTIES C_STANDARD 11 C_EXTENSIONS ON
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test)
  add_test(NAME preload-01-${name}-${suffix} COMMAND ${target})
  set_tests_properties(preload-01-${name}-${suffix} PROPERTIES LABELS preload TIMEOUT 60 SKIP_RETURN_CODE 77)
endfunction()

if(mi_can_preload)
  foreach(name IN LISTS mi_early_tests)
    if(TARGET mimalloc-obj)
      mi_add_linked_test(${name} object $<TARGET_OBJECTS:mimalloc-obj>)
    endif()
    if(TARGET mimalloc-static)
      mi_add_linked_test(${name} static)
      target_link_libraries(test-preload-01-${name}-static PRIVATE mimalloc-static)
    endif()
  endforeach()
endif()
