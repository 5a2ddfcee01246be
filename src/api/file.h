// Files that the library makes.  Layer: api.
//
// FI1  There is no file that could not be completed: it is removed again.
// FI2  What lies there already, of whomever, is neither written to nor removed.
#pragma once

#include <stdint.h>

#include "../base/compiler.h"

// Writes what the new file is to have.  0, or an errno value.
typedef int mi_file_fill_fun(intptr_t file, void* arg);

// Makes a file.  `fill` NULL: an empty one.  Returns an errno value: EEXIST if there is something of that name.
int _mi_file_make(const char* path, mi_file_fill_fun* fill, void* arg);

// Why a file could not be made, for messages.
const char* _mi_file_reason(int err);
