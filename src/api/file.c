// Files that the library makes.  Layer: api.  See file.h.
#include "file.h"

#include <errno.h>

#include "../prim/prim.h"

int _mi_file_make(const char* path, mi_file_fill_fun* fill, void* arg) {
  intptr_t file;
  int      err = _mi_prim_file_create(path, &file);
  if (err != 0) return err;
  if (fill != NULL) err = fill(file, arg);
  int err_close = _mi_prim_file_close(file);
  if (err == 0) err = err_close;
  if (err != 0) _mi_prim_file_remove(path);
  return err;
}

const char* _mi_file_reason(int err) {
  switch (err) {
    case ENOTSUP: return "this system has no such files";
    case ENOENT: return "the directory does not exist";
    case ENOTDIR: return "a part of the path is no directory";
    case EEXIST: return "there is such a file already";
    case EACCES:
    case EPERM:
    case EROFS: return "this user may not write there";
    case ENOSPC: return "no room is left there";
    case EFBIG: return "RLIMIT_FSIZE forbids a file of this size";
    case EMFILE:
    case ENFILE: return "too many files are open";
    case ENAMETOOLONG: return "the name is too long";
    default: return "the system refuses";
  }
}
