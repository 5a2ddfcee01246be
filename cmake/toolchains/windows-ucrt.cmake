# Windows, x86-64, with Debian's MinGW-w64 and the universal C runtime; programs run under wine.
include(${CMAKE_CURRENT_LIST_DIR}/windows.cmake)

# What the compiler links with, but for the C runtime.
execute_process(COMMAND ${CMAKE_C_COMPILER} -dumpspecs OUTPUT_VARIABLE mi_specs COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "-lmsvcrt" "-lucrt" mi_specs "${mi_specs}")
file(WRITE ${CMAKE_BINARY_DIR}/ucrt.specs "${mi_specs}")
set(CMAKE_C_FLAGS_INIT "-specs=${CMAKE_BINARY_DIR}/ucrt.specs -D_UCRT")
set(CMAKE_CXX_FLAGS_INIT "${CMAKE_C_FLAGS_INIT}")
# The threads of MinGW are compiled for the other C runtime, which has this function under another name.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,--defsym=_setjmp=__intrinsic_setjmp")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "${CMAKE_EXE_LINKER_FLAGS_INIT}")
