// Where the control groups of a process are read from.  Layer: prim.
#pragma once

#include "prim.h"

// Put in front of all paths; tests have a tree of files of their own.
extern const char* _mi_prim_container_root;
