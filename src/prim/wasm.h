// What WASI and Emscripten share.  Layer: prim.
#pragma once

#include "prim.h"

#define MI_WASM_PAGE ((size_t)65536) // what memory grows by
