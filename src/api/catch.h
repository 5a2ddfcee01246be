// Calling what may throw, from functions that must not.  Layer: api.
#pragma once

#include "../base/public.h"

// The result of fun(a, b); NULL if it throws, and then the exception is gone.
//
// Works for C as well on x86-64 and AArch64 with ELF.  Compiled as C for other processors it lets exceptions pass.
void* _mi_catch(void* (*fun)(size_t a, size_t b), size_t a, size_t b);
