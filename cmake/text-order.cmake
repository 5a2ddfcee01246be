# The order of the library's code: what every process runs comes first, in one piece.  A part of a file is resident in a
# process if it lies within the same 64 KiB, counted by addresses, as an instruction that was executed, since the kernel maps as
# much at a page fault.  Spread over 210 KiB, 45 KiB of code made all of it resident (docs/decisions/028-memory-at-the-peak.md).
# So the code begins at a multiple of 64 KiB, and the loader of glibc (from 2.35 on) leaves it at one: what most processes run
# is in the first 64 KiB (docs/decisions/037-where-small-programs-have-memory.md).

# What decides which linker is called, and which of its scripts it takes: flags, and what an enclosing project has for all targets
# (add_link_options, CMAKE_LINKER_TYPE).  Of a generator expression that names a linker it is not known yet when it holds.
function(mi_text_order_given result)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  set(flags "${CMAKE_C_FLAGS} ${CMAKE_C_FLAGS_${type}} ${CMAKE_SHARED_LINKER_FLAGS} ${CMAKE_SHARED_LINKER_FLAGS_${type}}")
  if(CMAKE_LINKER_TYPE)
    string(APPEND flags " ${CMAKE_C_USING_LINKER_${CMAKE_LINKER_TYPE}}")
  endif()
  get_directory_property(options LINK_OPTIONS)
  foreach(option IN LISTS options)
    if(option MATCHES "[$]<.*((-fuse-ld|--ld-path)=[^>]*)")
      set(option "${CMAKE_MATCH_1}")
    endif()
    if(NOT option MATCHES "[$]<|^LINKER:")
      string(REGEX REPLACE "^SHELL:" "" option "${option}")
      string(APPEND flags " ${option}")
    endif()
  endforeach()
  separate_arguments(flags UNIX_COMMAND "${flags}")
  set(${result} ${flags} PARENT_SCOPE)
endfunction()

# mi_text_order(FLAGS LINK_FLAGS): sets what to compile and to link a shared library with; nothing where the linker is not GNU
# ld.  Its own script is taken, with the names of the sections (-ffunction-sections) in front of all others of .text.  A name
# that there is none of is no error; test/preload/test-start-memory.c tells when too much is resident.
function(mi_text_order flags link_flags)
  mi_text_order_given(given)
  execute_process(COMMAND ${CMAKE_C_COMPILER} ${given} ${mi_link_flags} -shared -Wl,--verbose
    -o ${CMAKE_BINARY_DIR}/CMakeFiles/text-order.out # by default a.out, which may be somebody's
    OUTPUT_VARIABLE text ERROR_QUIET WORKING_DIRECTORY ${CMAKE_BINARY_DIR})
  string(REGEX MATCH "GNU ld.*\n=====+\n(.*)\n=====+\n" script "${text}")
  set(script "${CMAKE_MATCH_1}")
  string(FIND "${script}" "*(.text.unlikely " at)
  if(at EQUAL -1)
    return()
  endif()
  file(STRINGS ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/text-order.txt names REGEX "^[^#]")
  string(CONCAT first "*crt*.o(.text)\n    *libgcc.a:*(.text)\n    *libc_nonshared.a:*(.text)\n"
    "    *(.text.startup .text.startup.* .text.exit .text.exit.*)\n")
  foreach(name IN LISTS names)
    string(APPEND first "    *(.text.${name} .text.${name}.* .text.unlikely.${name} .text.unlikely.${name}.*)\n")
  endforeach()
  string(REPLACE "*(.text.unlikely " "${first}    *(.text.unlikely " script "${script}")
  # Constants lie before the code, with what the loader reads: else the tables of exceptions behind them come with them.
  string(REGEX MATCH "\n  \\.rodata  [^\n]*\n  \\.rodata1  [^\n]*" constants "${script}")
  string(REGEX MATCH "\n  \\. = ALIGN\\(CONSTANT \\(MAXPAGESIZE\\)\\);\n  \\.init  " before_code "${script}")
  if(constants AND before_code)
    string(REPLACE "${constants}" "" script "${script}")
    string(REPLACE "${before_code}" "${constants}${before_code}" script "${script}")
  endif()
  string(REGEX MATCH "\n  \\.fini  [^}]*}" at_end "${script}")
  string(REGEX MATCH "\n  \\.text  " before_text "${script}")
  if(at_end AND before_text)
    string(REPLACE "${at_end}" "" script "${script}")
    string(REPLACE "${before_text}" "${at_end}${before_text}" script "${script}")
  endif()
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/text-order.ld CONTENT "@script@" @ONLY)
  set(options -Wl,-T,${CMAKE_BINARY_DIR}/text-order.ld -Wl,-z,max-page-size=0x10000)
  string(REPLACE ";" "\" \"" joined "\"${options}\"") # the path may have spaces
  set(CMAKE_REQUIRED_FLAGS "-shared -fPIC -ffunction-sections ${joined}")
  check_c_source_compiles("int malloc_slow(void) { return 0; }" mi_has_text_order)
  if(mi_has_text_order)
    set(${flags} -ffunction-sections PARENT_SCOPE)
    set(${link_flags} ${options} PARENT_SCOPE)
    set(mi_text_order_file ${CMAKE_BINARY_DIR}/text-order.ld PARENT_SCOPE)
  endif()
endfunction()
