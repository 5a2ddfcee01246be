# Linux, x86-64, with the C library musl; programs run as they are.  There is no C++ library for it.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER musl-gcc)
set(CMAKE_CXX_COMPILER musl-gcc)
set(CMAKE_CXX_COMPILER_WORKS ON)
set(MI_TEST_NO_CXX ON)
# musl-gcc knows no -static-pie, and takes it for -pie.
set(mi_musl /usr/lib/x86_64-linux-musl)
set(MI_TEST_STATIC_PIE -static -nostartfiles -Wl,-pie,--no-dynamic-linker,-z,text ${mi_musl}/rcrt1.o ${mi_musl}/crti.o ${mi_musl}/crtn.o)
