// How much memory the control groups of the process allow it, on Linux.  Layer: prim.
//
//   /proc/self/cgroup       the path of the process in each hierarchy     0::/a/b    or    4:cpuset,memory:/a/b
//   /proc/self/mountinfo    where hierarchies are mounted, and which part of them
//   memory.max, memory.high (version 2), memory.limit_in_bytes (version 1) of the group and of all above it that can be seen
//
// What cannot be read, is not understood, or is too long, says nothing.  Called at the start of the process, if an option asks for
// it, or by the program: programs forbid themselves to open files later.
#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE
#endif
#include "linux_container.h"

#include <fcntl.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "../base/bits.h"
#include "posix_process.h"
#include "syscall.h"

#define CONTAINER_PATH_MAX 512  // longer paths are not followed
#define CONTAINER_LINE_MAX 1024 // longer lines are cut off: their first fields are what is looked at

const char* _mi_prim_container_root = "";

// ---- files ------------------------------------------------------------------------------------------------------------

typedef struct container_file_s {
  int    fd;
  size_t at, end; // of what was read and not used yet
  char   buffer[CONTAINER_LINE_MAX];
} container_file_t;

// Appends `more`; false if there is no room for it.
static bool container_append(char* path, const char* more) {
  size_t n = strlen(path), n_more = strlen(more);
  if (n_more >= CONTAINER_PATH_MAX - n) return false;
  memcpy(path + n, more, n_more + 1);
  return true;
}

static bool container_open(container_file_t* file, const char* dir, const char* name) {
  char path[CONTAINER_PATH_MAX];
  path[0] = 0;
  file->fd = -1;
  file->at = file->end = 0;
  if (!container_append(path, _mi_prim_container_root) || !container_append(path, dir) || !container_append(path, name))
    return false;
  file->fd = (int)_mi_syscall(SYS_openat, (uintptr_t)AT_FDCWD, (uintptr_t)path, O_RDONLY | O_CLOEXEC, 0);
  return file->fd >= 0;
}

static void container_close(container_file_t* file) {
  if (file->fd >= 0) _mi_syscall(SYS_close, (uintptr_t)file->fd, 0, 0, 0);
  file->fd = -1;
}

// -1 at the end.
static int container_get(container_file_t* file) {
  if (file->at == file->end) {
    long n = _mi_syscall(SYS_read, (uintptr_t)file->fd, (uintptr_t)file->buffer, sizeof(file->buffer), 0);
    if (n <= 0) return -1;
    file->at = 0;
    file->end = (size_t)n;
  }
  return (unsigned char)file->buffer[file->at++];
}

// The next line, without its end; false if there is none.
static bool container_read_line(container_file_t* file, char line[CONTAINER_LINE_MAX]) {
  size_t n = 0;
  int    c = container_get(file);
  if (c < 0) return false;
  for (; c >= 0 && c != '\n'; c = container_get(file)) {
    if (n < CONTAINER_LINE_MAX - 1) line[n++] = (char)c;
  }
  line[n] = 0;
  return true;
}

// ---- limits -----------------------------------------------------------------------------------------------------------

// A number of bytes; 0: none ("max"), or nothing that is understood.
static uint64_t container_parse(const char* text) {
  uint64_t x = 0;
  size_t   n = 0;
  for (; text[n] >= '0' && text[n] <= '9'; n++) {
    if (x > (UINT64_MAX - 9) / 10) return 0;
    x = 10 * x + (uint64_t)(text[n] - '0');
  }
  return n > 0 && text[n] == 0 ? x : 0;
}

static void container_read_limit(const char* dir, const char* name, uint64_t* least) {
  container_file_t file;
  char             line[CONTAINER_LINE_MAX];
  if (!container_open(&file, dir, name)) return;
  uint64_t limit = (container_read_line(&file, line) ? container_parse(line) : 0);
  container_close(&file);
  if (limit > 0 && limit < *least) *least = limit;
}

// Those of a directory and of all above it, down to the first n characters of its path.
static void container_read_all(char* dir, size_t n, bool is_v1, uint64_t* least) {
  for (size_t end = strlen(dir);; dir[end] = 0) {
    container_read_limit(dir, is_v1 ? "/memory.limit_in_bytes" : "/memory.max", least);
    if (!is_v1) container_read_limit(dir, "/memory.high", least);
    if (end <= n) return;
    do {
      end--;
    } while (end > n && dir[end] != '/');
  }
}

// ---- where they are ---------------------------------------------------------------------------------------------------

// Is `word` one of the words of a list with commas?
static bool container_lists(const char* list, const char* word) {
  size_t n = strlen(word);
  for (const char* p = list; p != NULL; p = strchr(p, ',')) {
    if (*p == ',') p++;
    if (strncmp(p, word, n) == 0 && (p[n] == 0 || p[n] == ',')) return true;
  }
  return false;
}

// The path of the process in the hierarchy that has memory; false if there is none.
static bool container_find_group(bool is_v1, char path[CONTAINER_PATH_MAX]) {
  container_file_t file;
  char             line[CONTAINER_LINE_MAX];
  bool             found = false;
  if (!container_open(&file, "/proc/self/cgroup", "")) return false;
  while (!found && container_read_line(&file, line)) {
    char* controllers = strchr(line, ':');
    char* group = (controllers == NULL ? NULL : strchr(controllers + 1, ':'));
    if (group == NULL || strlen(group + 1) >= CONTAINER_PATH_MAX || group[1] != '/') continue;
    *group = 0;
    found = (is_v1 ? container_lists(controllers + 1, "memory") : strcmp(line, "0:") == 0);
    if (found) memcpy(path, group + 1, strlen(group + 1) + 1);
  }
  container_close(&file);
  return found;
}

// The n-th field, from 0 on, of a line with spaces; it ends there.  NULL if there is none.
static char* container_field(char* line, int n) {
  for (; n > 0 && line != NULL; n--) {
    line = strchr(line, ' ');
    if (line != NULL) line++;
  }
  return line;
}

// Spaces and the like are written as \040 there.
static void container_decode(char* text) {
  char* to = text;
  for (; *text != 0 && *text != ' '; text++) {
    bool is_code = (text[0] == '\\' && text[1] >= '0' && text[1] <= '3' && text[2] >= '0' && text[2] <= '7' &&
                    text[3] >= '0' && text[3] <= '7');
    *to++ = (char)(is_code ? (text[1] - '0') * 64 + (text[2] - '0') * 8 + text[3] - '0' : *text);
    if (is_code) text += 3;
  }
  *to = 0;
}

// Does the line of mountinfo tell of that hierarchy?  Then these are the part of it that is mounted, and where.
//   36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
static bool container_is_mount(char* line, bool is_v1, char** part, char** where) {
  char* type = strstr(line, " - ");
  *part = container_field(line, 3);
  *where = container_field(line, 4);
  if (type == NULL || *part == NULL || *where == NULL || *where >= type) return false;
  type += 3;
  char* options = container_field(type, 2);
  if (strncmp(type, is_v1 ? "cgroup " : "cgroup2 ", is_v1 ? 7 : 8) != 0) return false;
  if (is_v1 && (options == NULL || !container_lists(options, "memory"))) return false;
  container_decode(*where);
  container_decode(*part);
  return true;
}

// The directory of the group; *n is how long the path of the mount is.
static bool container_find_dir(bool is_v1, const char* group, char dir[CONTAINER_PATH_MAX], size_t* n) {
  container_file_t file;
  char             line[CONTAINER_LINE_MAX], *part, *where;
  bool             found = false;
  if (!container_open(&file, "/proc/self/mountinfo", "")) return false;
  while (!found && container_read_line(&file, line)) found = container_is_mount(line, is_v1, &part, &where);
  container_close(&file);
  if (!found) return false;
  // Of the group only what is mounted can be seen; where that is another part, its top is what the process sees as its own.
  size_t n_part = (strcmp(part, "/") == 0 ? 0 : strlen(part));
  bool   is_within = (strncmp(group, part, n_part) == 0 && (group[n_part] == '/' || group[n_part] == 0));
  dir[0] = 0;
  if (!container_append(dir, where)) return false;
  *n = strlen(dir);
  if (!is_within || strncmp(group, "/..", 3) == 0 || strcmp(group + n_part, "/") == 0) return true;
  return container_append(dir, group + n_part);
}

static void container_read_version(bool is_v1, uint64_t* least) {
  char   group[CONTAINER_PATH_MAX], dir[CONTAINER_PATH_MAX];
  size_t n;
  if (!container_find_group(is_v1, group) || !container_find_dir(is_v1, group, dir, &n)) return;
  container_read_all(dir, n, is_v1, least);
}

size_t _mi_prim_container_limit(void) {
  uint64_t least = UINT64_MAX, machine = _mi_prim_machine_memory();
  container_read_version(false, &least);
  container_read_version(true, &least);
  // Version 1 says "none" by a number that no machine has.
  return least > SIZE_MAX || (machine > 0 && least >= machine) ? 0 : (size_t)least;
}

size_t _mi_prim_machine_memory(void) {
  struct sysinfo info;
  int            saved = errno;
  uint64_t       size = (sysinfo(&info) == 0 ? (uint64_t)info.totalram * info.mem_unit : 0), max = SIZE_MAX;
  errno = saved;
  return (size_t)(size < max ? size : max);
}
