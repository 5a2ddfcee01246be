# For the files of Debian's cross compilers, which include this last: MI_CROSS_CLANG=ON takes clang and lld in their place, with their
# headers and libraries.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES MI_CROSS_CLANG)
if(MI_CROSS_CLANG)
  string(REGEX REPLACE "-gcc$" "" CMAKE_C_COMPILER_TARGET "${CMAKE_C_COMPILER}")
  set(CMAKE_CXX_COMPILER_TARGET ${CMAKE_C_COMPILER_TARGET})
  set(CMAKE_C_COMPILER clang-19)
  set(CMAKE_CXX_COMPILER clang++-19)
  foreach(kind EXE SHARED MODULE)
    set(CMAKE_${kind}_LINKER_FLAGS_INIT -fuse-ld=lld)
  endforeach()
endif()
