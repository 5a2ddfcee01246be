# Windows, x86-64, with clang, and headers and libraries of Debian's MinGW-w64; programs run under wine.
include(${CMAKE_CURRENT_LIST_DIR}/windows.cmake)
set(CMAKE_C_COMPILER clang-19)
set(CMAKE_CXX_COMPILER clang++-19)
set(CMAKE_C_COMPILER_TARGET x86_64-w64-mingw32)
set(CMAKE_CXX_COMPILER_TARGET x86_64-w64-mingw32)
