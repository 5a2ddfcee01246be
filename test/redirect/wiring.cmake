# Redirection: programs of both C runtimes, which know nothing of the library and have none of its headers, with mimalloc.dll in
# the process.
if(NOT (MI_BUILD_SHARED AND MI_OVERRIDE))
  return()
endif()

# ---- programs -----------------------------------------------------------------------------------------------------------

set(redirect_runtimes default)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND NOT CMAKE_C_FLAGS MATCHES "_UCRT")
  # MinGW's gcc links with one C runtime; this makes it the other one.
  execute_process(COMMAND ${CMAKE_C_COMPILER} -dumpspecs OUTPUT_VARIABLE redirect_specs COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "-lmsvcrt" "-lucrt" redirect_specs "${redirect_specs}")
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/ucrt.specs "${redirect_specs}")
  list(APPEND redirect_runtimes ucrt)
endif()

set(redirect_prefix "") # of names of C
if(CMAKE_SIZEOF_VOID_P EQUAL 4)
  set(redirect_prefix _)
endif()

foreach(runtime IN LISTS redirect_runtimes)
  foreach(program target running loading)
    set(name redirect-${program}-${runtime})
    add_executable(${name} redirect/test-${program}.c)
    target_compile_options(${name} PRIVATE ${mi_test_warnings} -O1 -fno-builtin)
    target_link_options(${name} PRIVATE -static-libgcc)
    set_target_properties(${name} PROPERTIES C_STANDARD 11 C_EXTENSIONS ON RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test)
    if(runtime STREQUAL "ucrt")
      target_compile_options(${name} PRIVATE -specs=${CMAKE_CURRENT_BINARY_DIR}/ucrt.specs -D_UCRT)
      target_link_options(${name} PRIVATE -specs=${CMAKE_CURRENT_BINARY_DIR}/ucrt.specs)
    endif()
  endforeach()
  # It imports the library, as documented for programs that are linked with it, and calls nothing of it.
  target_link_libraries(redirect-target-${runtime} PRIVATE mimalloc)
  target_link_options(redirect-target-${runtime} PRIVATE -Wl,--require-defined=${redirect_prefix}mi_version)
  add_dependencies(redirect-running-${runtime} mimalloc)
  add_dependencies(redirect-loading-${runtime} mimalloc redirect-late)
endforeach()

add_library(redirect-late SHARED redirect/late.cpp)
set_target_properties(redirect-late PROPERTIES PREFIX "" RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test)
target_link_options(redirect-late PRIVATE -static-libgcc -static-libstdc++ -static)

# ---- tests --------------------------------------------------------------------------------------------------------------

# redirect_test(NAME PROGRAM ENVIRONMENT ARGUMENT ...)
function(redirect_test name program environment)
  add_test(NAME ${name} COMMAND ${program} ${ARGN})
  set_tests_properties(${name} PROPERTIES TIMEOUT 120 ENVIRONMENT "${environment}" LABELS redirect)
endfunction()

foreach(runtime IN LISTS redirect_runtimes)
  set(program redirect-target-${runtime})
  redirect_test(redirect-none-${runtime} ${program} "MIMALLOC_DISABLE_REDIRECT=1" none redirect-late.dll)
  redirect_test(redirect-iat-${runtime} ${program} "" iat redirect-late.dll)
  redirect_test(redirect-inline-${runtime} ${program} "MIMALLOC_REDIRECT=inline" inline redirect-late.dll)
  set(program redirect-running-${runtime})
  redirect_test(redirect-running-none-${runtime} ${program} "MIMALLOC_DISABLE_REDIRECT=1" none)
  redirect_test(redirect-running-iat-${runtime} ${program} "MIMALLOC_REDIRECT=IAT" iat)
  redirect_test(redirect-running-inline-${runtime} ${program} "MIMALLOC_REDIRECT=inline" inline)
  redirect_test(redirect-running-deaf-${runtime} ${program} "" iat deaf)
  redirect_test(redirect-loading-${runtime} redirect-loading-${runtime} "" $<TARGET_FILE:redirect-late>)
endforeach()

# What is said of a value that is none; the default stays.
redirect_test(redirect-bad-value redirect-target-default "MIMALLOC_REDIRECT=both;MIMALLOC_SHOW_ERRORS=1" iat redirect-late.dll)
set_tests_properties(redirect-bad-value PROPERTIES
  PASS_REGULAR_EXPRESSION "option mimalloc_redirect has an invalid value. .both. is neither iat nor inline: it stays iat.*\n0 failed")
redirect_test(redirect-bad-switch redirect-target-default "MIMALLOC_DISABLE_REDIRECT=perhaps;MIMALLOC_SHOW_ERRORS=1" iat)
set_tests_properties(redirect-bad-switch PROPERTIES
  PASS_REGULAR_EXPRESSION "option mimalloc_disable_redirect has an invalid value. .perhaps. .*\n0 failed")
