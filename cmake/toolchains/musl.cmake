# Linux, x86-64, with the C library musl; programs run as they are.  There is no C++ library for it.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER musl-gcc)
set(CMAKE_CXX_COMPILER musl-gcc)
set(CMAKE_CXX_COMPILER_WORKS ON)
set(MI_TEST_NO_CXX ON)
