// Files on macOS, the BSDs and Haiku.  Layer: prim.
//
// Shielded: these are points where libc lets a thread be cancelled, and it would be with a lock held, or within malloc.
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "posix_process.h"

static int file_open(const char* path, int flags) {
  int fd;
  do {
    fd = open(path, flags | O_CLOEXEC, 0600);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

// As on Linux never a descriptor of standard input, output or error (linux_file.c).
static int file_open_new(const char* path) {
  enum { N_STANDARD = STDERR_FILENO + 1 };
  int taken[N_STANDARD], n = 0;
  while (n < N_STANDARD && (taken[n] = file_open("/", O_RDONLY)) >= 0 && taken[n] < N_STANDARD) n++;
  if (n < N_STANDARD && taken[n] >= 0) close(taken[n]);
  int fd = file_open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW);
  int err = errno;
  while (n > 0) close(taken[--n]);
  errno = err;
  return fd;
}

int _mi_prim_file_create(const char* path, intptr_t* file) {
  int saved = errno, state = _mi_posix_process_shield();
  int fd = file_open_new(path);
  int err = (fd < 0 ? errno : 0);
  *file = fd;
  _mi_posix_process_unshield(state);
  errno = saved;
  return err;
}

int _mi_prim_file_write(intptr_t file, const void* data, size_t size) {
  int         saved = errno, err = (_mi_posix_process_may_write((int)file, size) ? 0 : EFBIG);
  int         state = _mi_posix_process_shield();
  const char* at = (const char*)data;
  while (size > 0 && err == 0) {
    ssize_t n = write((int)file, at, size);
    if (n > 0) {
      at += n;
      size -= (size_t)n;
    }
    else if (n == 0 || errno != EINTR) {
      err = (n == 0 ? EIO : errno);
    }
  }
  _mi_posix_process_unshield(state);
  errno = saved;
  return err;
}

// EINTR: it is closed all the same, on these systems too.
int _mi_prim_file_close(intptr_t file) {
  int saved = errno, state = _mi_posix_process_shield();
  int err = (close((int)file) == 0 || errno == EINTR ? 0 : errno);
  _mi_posix_process_unshield(state);
  errno = saved;
  return err;
}

int _mi_prim_file_remove(const char* path) {
  int saved = errno, state = _mi_posix_process_shield();
  int err = (unlink(path) == 0 ? 0 : errno);
  _mi_posix_process_unshield(state);
  errno = saved;
  return err;
}
