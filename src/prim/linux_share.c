// Files in memory that other processes read, on Linux.  Layer: prim.
//
// System calls without libc: these are points where libc lets a thread be cancelled, and it would be with a lock held.
#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "../base/bits.h"
#include "prim.h"
#include "posix_process.h"
#include "syscall.h"

static int share_open(const char* path, int flags) {
  long fd;
  do {
    fd = _mi_syscall(SYS_openat, (uintptr_t)AT_FDCWD, (uintptr_t)path, (uintptr_t)(flags | O_CLOEXEC), 0600);
  } while (fd == -EINTR);
  return (int)fd;
}

static void share_close(int fd) {
  _mi_syscall(SYS_close, (uintptr_t)fd, 0, 0, 0);
}

// ---- who we are -----------------------------------------------------------------------------------------------------

static uint64_t share_number(const char* text) {
  uint64_t n = 0;
  for (; *text >= '0' && *text <= '9'; text++) n = n * 10 + (uint64_t)(*text - '0');
  return n;
}

// "pid:[4026531836]"
static uint64_t share_pid_space(void) {
  char text[64];
  long n = _mi_syscall(SYS_readlinkat, (uintptr_t)AT_FDCWD, (uintptr_t)"/proc/self/ns/pid", (uintptr_t)text,
                       sizeof(text) - 1);
  if (n <= 5) return 0;
  text[n] = 0;
  return share_number(text + 5);
}

static void share_copy_name(mi_prim_self_t* self, const char* from, const char* end) {
  size_t n = mi_min((size_t)(end - from), sizeof(self->name) - 1);
  for (size_t i = 0; i < n; i++) self->name[i] = from[i];
}

// "4711 (name) S ...": the 22nd field is when the process was started.  The name, of up to 15 characters, may hold anything.
int _mi_prim_self(mi_prim_self_t* self) {
  char text[1024];
  int  fd = share_open("/proc/self/stat", O_RDONLY);
  memset(self, 0, sizeof(*self));
  if (fd < 0) return -fd;
  long n = _mi_syscall(SYS_read, (uintptr_t)fd, (uintptr_t)text, sizeof(text) - 1, 0);
  share_close(fd);
  text[n < 0 ? 0 : n] = 0;
  const char *open = strchr(text, '('), *s = strrchr(text, ')');
  if (open == NULL || s == NULL) return EIO;
  self->pid = share_number(text);
  self->pid_space = share_pid_space();
  share_copy_name(self, open + 1, s);
  for (int field = 2; s != NULL && field < 22; field++) s = strchr(s + 1, ' ');
  self->started = (s == NULL ? 0 : share_number(s + 1));
  return 0;
}

bool _mi_prim_process_exists(uint64_t pid) {
  return _mi_syscall(SYS_kill, (uintptr_t)pid, 0, 0, 0) != -ESRCH;
}

// ---- files ----------------------------------------------------------------------------------------------------------

const char* _mi_prim_share_directory(size_t i) {
  static const char name[] = "XDG_RUNTIME_DIR=";
  const char*       entry;
  if (i == 1) return "/dev/shm";
  if (i > 1) return NULL;
  for (size_t k = 0; !_mi_prim_is_privileged() && (entry = _mi_prim_environment_entry(k)) != NULL; k++) {
    if (strncmp(entry, name, sizeof(name) - 1) == 0 && entry[sizeof(name) - 1] == '/') return entry + sizeof(name) - 1;
  }
  return "/dev/shm";
}

// It is written, and not just made so long: where no room is left, an access to a mapping would end the process.
static int share_fill(int fd, size_t size) {
  static const char zeros[512] = {0};
  while (size > 0) {
    long n = _mi_syscall(SYS_write, (uintptr_t)fd, (uintptr_t)zeros, mi_min(size, sizeof(zeros)), 0);
    if (n == -EINTR) continue;
    if (n <= 0) return n == 0 ? ENOSPC : (int)-n;
    size -= (size_t)n;
  }
  return 0;
}

static int share_map(int fd, size_t size, void** start) {
  int   saved = errno;
  void* p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  int   err = (p == MAP_FAILED ? errno : 0);
  errno = saved;
  if (err == 0) *start = p;
  return err;
}

// A new file, at the end of a path whose directory others may write to: whatever lies there is not touched.
int _mi_prim_share(const char* path, size_t size, void** start) {
  if (!_mi_prim_may_write(size)) return EFBIG;
  int fd = share_open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW);
  if (fd < 0) return -fd;
  int err = (int)-_mi_syscall(SYS_fchmod, (uintptr_t)fd, 0600, 0, 0); // whatever the umask
  if (err == 0) err = share_fill(fd, size);
  if (err == 0) err = share_map(fd, size, start);
  share_close(fd);
  if (err != 0) _mi_prim_unshare(path);
  return err;
}

int _mi_prim_unshare(const char* path) {
  return (int)-_mi_syscall(SYS_unlinkat, (uintptr_t)AT_FDCWD, (uintptr_t)path, 0, 0);
}

// As the kernel returns them.
typedef struct share_entry_s {
  uint64_t inode;
  int64_t  next;
  uint16_t size;
  uint8_t  type;
  char     name[1];
} share_entry_t;

void _mi_prim_share_list(const char* directory, size_t max, void (*visit)(const char* name, void* arg), void* arg) {
  union {
    share_entry_t first;
    char          bytes[2048];
  } u;
  int fd = share_open(directory, O_RDONLY | O_DIRECTORY);
  if (fd < 0) return;
  for (long n;
       max > 0 && (n = _mi_syscall(SYS_getdents64, (uintptr_t)fd, (uintptr_t)u.bytes, sizeof(u.bytes), 0)) > 0;) {
    for (long at = 0; at < n && max > 0; max--) {
      const share_entry_t* entry = (const share_entry_t*)(const void*)(u.bytes + at);
      visit(entry->name, arg);
      at += entry->size;
    }
  }
  share_close(fd);
}
