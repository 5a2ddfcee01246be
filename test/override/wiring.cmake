# Memory tags: with the option off, and, where the processor is emulated, on one that has none.
if(MI_MEMORY_TAGGING AND TARGET test-override-tagging)
  add_test(NAME override-tagging-off COMMAND test-override-tagging)
  if(CMAKE_CROSSCOMPILING_EMULATOR MATCHES "qemu")
    add_test(NAME override-tagging-without COMMAND test-override-tagging)
    set_tests_properties(override-tagging-without PROPERTIES LABELS override TIMEOUT ${mi_test_timeout}
      ENVIRONMENT QEMU_CPU=cortex-a57)
  endif()
  set_tests_properties(override-tagging-off PROPERTIES LABELS override TIMEOUT ${mi_test_timeout} ENVIRONMENT MIMALLOC_MEMORY_TAGGING=0)
endif()

# Options come from a copy of the environment that the library makes before libc has one.
if(mi_is_wasm AND TARGET test-override-libc)
  add_test(NAME override-environment COMMAND test-override-libc)
  set_tests_properties(override-environment PROPERTIES LABELS override TIMEOUT ${mi_test_timeout} 
    ENVIRONMENT "MIMALLOC_VERBOSE=1;MIMALLOC_MAX_ERRORS=77" PASS_REGULAR_EXPRESSION "option .max_errors.: 77")
endif()
