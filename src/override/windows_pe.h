// Images of programs and DLLs (PE) as the loader has mapped them.  Layer: override.
//
// Only reads, takes no lock and calls no system function, so it works inside the loader.  Every offset is checked against the
// size of the image: what is packed or protected may have tables that lie.
#pragma once

#include "../base/compiler.h"

typedef struct mi_windows_image_s {
  const unsigned char* base;
  size_t               size;
} mi_windows_image_t;

// False if no image of this processor's kind begins there.
bool  _mi_windows_pe_open(mi_windows_image_t* image, const void* base);
// The function or variable that the image exports under that name; NULL if there is none, or if it is another image's.
void* _mi_windows_pe_export(const mi_windows_image_t* image, const char* name);

// Calls `visit` for each address that the image has imported, those that it loads only when they are needed included.
typedef void (*mi_windows_visit_t)(void** slot, void* arg);
void _mi_windows_pe_imports(const mi_windows_image_t* image, mi_windows_visit_t visit, void* arg);

static inline bool _mi_windows_pe_has(const mi_windows_image_t* image, const void* p) {
  return (uintptr_t)p - (uintptr_t)image->base < image->size;
}
