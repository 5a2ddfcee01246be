# Windows, x86-64, with clang, and headers and libraries of Debian's MinGW-w64; programs run under wine.
include(${CMAKE_CURRENT_LIST_DIR}/windows.cmake)
set(CMAKE_C_COMPILER clang-19)
set(CMAKE_CXX_COMPILER clang++-19)
set(CMAKE_C_COMPILER_TARGET x86_64-w64-mingw32)
set(CMAKE_CXX_COMPILER_TARGET x86_64-w64-mingw32)
# Of the two C++ libraries of MinGW clang would take the one without threads.
execute_process(COMMAND x86_64-w64-mingw32-g++-posix -print-file-name=libstdc++.a OUTPUT_VARIABLE mi_libstdcxx
  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
get_filename_component(mi_libstdcxx ${mi_libstdcxx} DIRECTORY)
set(CMAKE_CXX_FLAGS_INIT "-stdlib++-isystem ${mi_libstdcxx}/include/c++ -stdlib++-isystem ${mi_libstdcxx}/include/c++/x86_64-w64-mingw32")
string(APPEND CMAKE_CXX_FLAGS_INIT " -nostdlib++")
set(CMAKE_CXX_STANDARD_LIBRARIES "${mi_libstdcxx}/libstdc++.a -lpthread" CACHE STRING "")
