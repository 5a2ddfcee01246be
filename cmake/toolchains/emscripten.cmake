# WebAssembly with Emscripten, whose own file for CMake does most; programs run under node.
execute_process(COMMAND em-config EMSCRIPTEN_ROOT OUTPUT_VARIABLE mi_emscripten_root OUTPUT_STRIP_TRAILING_WHITESPACE)
include(${mi_emscripten_root}/cmake/Modules/Platform/Emscripten.cmake)
# Debian's Emscripten finds parts of itself only with Debian's node.
if(EXISTS /usr/share/nodejs/acorn)
  set_property(GLOBAL PROPERTY RULE_LAUNCH_LINK "env NODE_PATH=/usr/share/nodejs")
endif()
# Where node has a function `fetch`, Emscripten 3.1.6 takes it for a browser's.
set(CMAKE_CROSSCOMPILING_EMULATOR node --no-experimental-fetch)
