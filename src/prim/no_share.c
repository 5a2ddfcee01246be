// Systems where the library makes no files for other processes to read.  Layer: prim.
#include <errno.h>

#include "prim.h"

int _mi_prim_self(mi_prim_self_t* self) {
  (void)self;
  return ENOTSUP;
}

bool _mi_prim_process_exists(uint64_t pid) {
  (void)pid;
  return true;
}

const char* _mi_prim_share_directory(size_t i) {
  (void)i;
  return NULL;
}

int _mi_prim_share(const char* path, size_t size, void** start) {
  (void)path, (void)size, (void)start;
  return ENOTSUP;
}

int _mi_prim_unshare(const char* path) {
  (void)path;
  return ENOTSUP;
}

void _mi_prim_share_list(const char* directory, size_t max, void (*visit)(const char* name, void* arg), void* arg) {
  (void)directory, (void)max, (void)visit, (void)arg;
}
