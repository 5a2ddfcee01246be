# The same with the summaries of ThinLTO.
set(mi_lto -flto=thin)
include(${CMAKE_CURRENT_LIST_DIR}/clang-lto.cmake)
