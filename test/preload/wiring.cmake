# What the tests of `preload` open with dlopen: libraries that know nothing of this one.

function(mi_add_module name)
  add_library(module-${name} MODULE preload/modules/${name}.c)
  target_compile_options(module-${name} PRIVATE ${mi_test_warnings} -fno-builtin-malloc)
  set_target_properties(module-${name} PROPERTIES C_STANDARD 11 C_EXTENSIONS ON BUILD_RPATH_USE_ORIGIN ON
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test/modules/${name})
endfunction()

if(CMAKE_EXE_LINKER_FLAGS MATCHES "fuse-ld=lld")
  foreach(target test-preload-ifunc test-preload-ifunc-object test-preload-ifunc-static)
    if(TARGET ${target})
      target_compile_definitions(${target} PRIVATE MI_TEST_LLD=1)
    endif()
  endforeach()
endif()

# The names of cmake/text-order.txt are those of the plain library, compiled as C by GCC.  Others run other functions as well.
if(TARGET test-preload-start-memory AND mi_order_link_flags AND CMAKE_C_COMPILER_ID STREQUAL "GNU" AND NOT MI_USE_CXX
    AND CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64" AND CMAKE_SIZEOF_VOID_P EQUAL 8)
  set(plain ${mi_is_release})
  foreach(name MI_DEBUG MI_DEBUG_INTERNAL MI_DEBUG_FULL MI_DEBUG_TSAN MI_DEBUG_UBSAN MI_SECURE MI_SECURE_FULL MI_PADDING
      MI_GUARDED MI_MEMORY_TAGGING MI_TRACK_ASAN MI_TRACK_VALGRIND)
    if(${name})
      set(plain OFF)
    endif()
  endforeach()
  if(plain)
    target_compile_definitions(test-preload-start-memory PRIVATE MI_TEST_TEXT_ORDER=1)
  endif()
endif()

if(TARGET test-preload-deepbind)
  foreach(name deep caller hidden)
    mi_add_module(${name})
    target_link_libraries(module-${name} PRIVATE ${CMAKE_DL_LIBS})
    add_dependencies(test-preload-deepbind module-${name})
  endforeach()
  set_target_properties(module-caller PROPERTIES BUILD_RPATH "$ORIGIN/../hidden")
  target_link_options(module-caller PRIVATE -Wl,--enable-new-dtags) # RUNPATH, which counts for its own calls only
  target_compile_definitions(test-preload-deepbind PRIVATE MI_TEST_DEEP="$<TARGET_FILE:module-deep>"
    MI_TEST_CALLER="$<TARGET_FILE:module-caller>" MI_TEST_HIDDEN_NAME="$<TARGET_FILE_NAME:module-hidden>")

  get_test_property(preload-deepbind ENVIRONMENT mi_preload)
  add_test(NAME preload-deepbind-kept COMMAND test-preload-deepbind)
  set_tests_properties(preload-deepbind-kept PROPERTIES LABELS preload TIMEOUT ${mi_test_timeout} SKIP_RETURN_CODE 77
    ENVIRONMENT "${mi_preload};MIMALLOC_KEEP_DEEPBIND=1")
endif()

if(TARGET test-preload-audit AND CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64" AND CMAKE_SIZEOF_VOID_P EQUAL 8 AND NOT MI_LIBC_MUSL)
  mi_add_module(auditor)
  add_dependencies(test-preload-audit module-auditor)
  target_compile_definitions(test-preload-audit PRIVATE MI_TEST_AUDITOR="$<TARGET_FILE:module-auditor>")
  target_link_libraries(test-preload-audit PRIVATE ${CMAKE_DL_LIBS})
endif()

# Where all memory is what the library reserves, it has to be there for constructors that run before the library's own.
if(TARGET test-preload-early-start)
  mi_add_module(early)
  add_dependencies(test-preload-early-start module-early)
  get_test_property(preload-early-start ENVIRONMENT mi_preload)
  string(REPLACE "$<TARGET_FILE:mimalloc>" "$<TARGET_FILE:mimalloc>:$<TARGET_FILE:module-early>" mi_preload "${mi_preload}")
  add_test(NAME preload-early-start-reserved COMMAND test-preload-early-start)
  set_tests_properties(preload-early-start-reserved PROPERTIES LABELS preload TIMEOUT ${mi_test_timeout} SKIP_RETURN_CODE 77
    ENVIRONMENT "${mi_preload};MI_TEST_MODULE=1;MIMALLOC_RESERVE_OS_MEMORY=64M;MIMALLOC_DISALLOW_OS_ALLOC=1")
endif()

# With the allocator in it, of which the program sees nothing.
if(TARGET test-preload-unload AND TARGET mimalloc-static)
  mi_add_module(plugin)
  target_link_libraries(module-plugin PRIVATE mimalloc-static)
  target_link_options(module-plugin PRIVATE -Wl,--exclude-libs,ALL)
  add_dependencies(test-preload-unload module-plugin)
  target_compile_definitions(test-preload-unload PRIVATE MI_TEST_PLUGIN="$<TARGET_FILE:module-plugin>")
endif()

# The library in its other form, with thread-local storage that is made when a thread needs it.
if(TARGET test-preload-dlopen AND NOT MI_LIBC_MUSL)
  mi_add_module(filler)
  add_dependencies(test-preload-dlopen module-filler)
  target_compile_definitions(test-preload-dlopen PRIVATE MI_TEST_FILLER="$<TARGET_FILE:module-filler>")

  add_library(mimalloc-dynamic-tls SHARED ${PROJECT_SOURCE_DIR}/src/static.c)
  mi_user_target(mimalloc-dynamic-tls local-dynamic)
  target_compile_definitions(mimalloc-dynamic-tls PRIVATE MI_SHARED_LIB MI_SHARED_LIB_EXPORT MI_NO_IFUNC=1)
  target_link_libraries(mimalloc-dynamic-tls PRIVATE ${mi_libraries})
  target_link_options(mimalloc-dynamic-tls PRIVATE ${mi_link_flags})
  add_dependencies(test-preload-dlopen mimalloc-dynamic-tls)
  set(mi_dynamic_tls "MI_TEST_LIBRARY=$<TARGET_FILE:mimalloc-dynamic-tls>;MI_TEST_DYNAMIC_TLS=1")
  add_test(NAME preload-dlopen-dynamic-tls COMMAND test-preload-dlopen)
  set_tests_properties(preload-dlopen-dynamic-tls PROPERTIES LABELS preload TIMEOUT ${mi_test_timeout}
    SKIP_RETURN_CODE 77 ENVIRONMENT "${mi_dynamic_tls}")

  # It serves whole programs, too.
  add_test(NAME preload-cliffs-dynamic-tls COMMAND test-preload-cliffs)
  get_test_property(preload-cliffs ENVIRONMENT mi_preload)
  string(REPLACE "$<TARGET_FILE:mimalloc>" "$<TARGET_FILE:mimalloc-dynamic-tls>" mi_preload "${mi_preload}")
  set_tests_properties(preload-cliffs-dynamic-tls PROPERTIES LABELS preload TIMEOUT ${mi_test_timeout}
    SKIP_RETURN_CODE 77 ENVIRONMENT "${mi_preload}")
endif()
