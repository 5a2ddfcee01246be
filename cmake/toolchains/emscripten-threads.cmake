# WebAssembly with Emscripten and its threads, which are workers.
set(CMAKE_C_FLAGS_INIT -pthread)
set(CMAKE_CXX_FLAGS_INIT -pthread)
include(${CMAKE_CURRENT_LIST_DIR}/emscripten.cmake)
