// Files on Linux, and who we are for other processes.  Layer: prim.
//
// System calls without libc: these are points where libc lets a thread be cancelled, and it would be with a lock held, or within
// malloc.
#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../base/bits.h"
#include "posix_process.h"
#include "syscall.h"

static int file_open(const char* path, int flags) {
  long fd;
  do {
    fd = _mi_syscall(SYS_openat, (uintptr_t)AT_FDCWD, (uintptr_t)path, (uintptr_t)(flags | O_CLOEXEC), 0600);
  } while (fd == -EINTR);
  return (int)fd;
}

static long file_close(int fd) {
  return _mi_syscall(SYS_close, (uintptr_t)fd, 0, 0, 0);
}

// ---- who we are -----------------------------------------------------------------------------------------------------

static uint64_t file_number(const char* text) {
  uint64_t n = 0;
  for (; *text >= '0' && *text <= '9'; text++) n = n * 10 + (uint64_t)(*text - '0');
  return n;
}

// "pid:[4026531836]"
static uint64_t file_pid_space(void) {
  char text[64];
  long n = _mi_syscall(SYS_readlinkat, (uintptr_t)AT_FDCWD, (uintptr_t)"/proc/self/ns/pid", (uintptr_t)text,
                       sizeof(text) - 1);
  if (n <= 5) return 0;
  text[n] = 0;
  return file_number(text + 5);
}

static void file_copy_name(mi_prim_self_t* self, const char* from, const char* end) {
  size_t n = mi_min((size_t)(end - from), sizeof(self->name) - 1);
  for (size_t i = 0; i < n; i++) self->name[i] = from[i];
}

// "4711 (name) S ...": the 22nd field is when the process was started.  The name, of up to 15 characters, may hold anything.
int _mi_prim_self(mi_prim_self_t* self) {
  char text[1024];
  int  fd = file_open("/proc/self/stat", O_RDONLY);
  memset(self, 0, sizeof(*self));
  if (fd < 0) return -fd;
  long n = _mi_syscall(SYS_read, (uintptr_t)fd, (uintptr_t)text, sizeof(text) - 1, 0);
  file_close(fd);
  text[n < 0 ? 0 : n] = 0;
  const char *open = strchr(text, '('), *s = strrchr(text, ')');
  if (open == NULL || s == NULL) return EIO;
  self->pid = file_number(text);
  self->pid_space = file_pid_space();
  file_copy_name(self, open + 1, s);
  for (int field = 2; s != NULL && field < 22; field++) s = strchr(s + 1, ' ');
  self->started = (s == NULL ? 0 : file_number(s + 1));
  return 0;
}

bool _mi_prim_process_exists(uint64_t pid) {
  return _mi_syscall(SYS_kill, (uintptr_t)pid, 0, 0, 0) != -ESRCH;
}

// ---- files ----------------------------------------------------------------------------------------------------------

// Never one of the descriptors of standard input, output and error, which the program may have closed: what it, or the library,
// still writes there would be in the file.  So those are taken meanwhile, by what cannot be written to.
static int file_open_new(const char* path) {
  enum { N_STANDARD = STDERR_FILENO + 1 };
  int taken[N_STANDARD], n = 0;
  while (n < N_STANDARD && (taken[n] = file_open("/", O_PATH)) >= 0 && taken[n] < N_STANDARD) n++;
  if (n < N_STANDARD && taken[n] >= 0) file_close(taken[n]);
  int fd = file_open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW);
  while (n > 0) file_close(taken[--n]);
  return fd;
}

int _mi_prim_file_create(const char* path, intptr_t* file) {
  int fd = file_open_new(path);
  if (fd < 0) return -fd;
  _mi_syscall(SYS_fchmod, (uintptr_t)fd, 0600, 0, 0); // whatever the umask takes from it
  *file = fd;
  return 0;
}

int _mi_prim_file_write(intptr_t file, const void* data, size_t size) {
  const char* at = (const char*)data;
  if (!_mi_posix_process_may_write((int)file, size)) return EFBIG;
  while (size > 0) {
    long n = _mi_syscall(SYS_write, (uintptr_t)file, (uintptr_t)at, size, 0);
    if (n == -EINTR) continue;
    if (n <= 0) return n == 0 ? ENOSPC : (int)-n;
    at += n;
    size -= (size_t)n;
  }
  return 0;
}

int _mi_prim_file_map(intptr_t file, size_t size, void** start) {
  int   saved = errno;
  void* p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, (int)file, 0);
  int   err = (p == MAP_FAILED ? errno : 0);
  errno = saved;
  if (err == 0) *start = p;
  return err;
}

// EINTR: it is closed all the same.
int _mi_prim_file_close(intptr_t file) {
  long result = file_close((int)file);
  return result == -EINTR ? 0 : (int)-result;
}

int _mi_prim_file_remove(const char* path) {
  return (int)-_mi_syscall(SYS_unlinkat, (uintptr_t)AT_FDCWD, (uintptr_t)path, 0, 0);
}

const char* _mi_prim_file_directory(size_t i) {
  static const char name[] = "XDG_RUNTIME_DIR=";
  const char*       entry;
  if (i == 1) return "/dev/shm";
  if (i > 1) return NULL;
  for (size_t k = 0; !_mi_prim_is_privileged() && (entry = _mi_prim_environment_entry(k)) != NULL; k++) {
    if (strncmp(entry, name, sizeof(name) - 1) == 0 && entry[sizeof(name) - 1] == '/') return entry + sizeof(name) - 1;
  }
  return "/dev/shm";
}

// As the kernel returns them.
typedef struct file_entry_s {
  uint64_t inode;
  int64_t  next;
  uint16_t size;
  uint8_t  type;
  char     name[1];
} file_entry_t;

void _mi_prim_file_list(const char* directory, size_t max, void (*visit)(const char* name, void* arg), void* arg) {
  union {
    file_entry_t first;
    char         bytes[2048];
  } u;
  int fd = file_open(directory, O_RDONLY | O_DIRECTORY);
  if (fd < 0) return;
  for (long n;
       max > 0 && (n = _mi_syscall(SYS_getdents64, (uintptr_t)fd, (uintptr_t)u.bytes, sizeof(u.bytes), 0)) > 0;) {
    for (long at = 0; at < n && max > 0; max--) {
      const file_entry_t* entry = (const file_entry_t*)(const void*)(u.bytes + at);
      visit(entry->name, arg);
      at += entry->size;
    }
  }
  file_close(fd);
}
