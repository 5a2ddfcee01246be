// What the environment says about the recording, and its file.
#define _GNU_SOURCE
#include "settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIMIT_DEFAULT "256M"
#define LIMIT_MIN     (1u << 20)
#define LIMIT_MAX     (1ull << 40)

#define EXECUTIONS_MAX 1000 // of a process

void settings_say(const char* format, ...) {
  char    text[PATH_MAX + 200] = "trace-record: ";
  size_t  length = strlen(text);
  va_list arguments;
  va_start(arguments, format);
  int n = vsnprintf(text + length, sizeof(text) - length - 1, format, arguments);
  va_end(arguments);
  if (n > 0) length += (size_t)n < sizeof(text) - length - 1 ? (size_t)n : sizeof(text) - length - 2;
  text[length++] = '\n';
  if (write(STDERR_FILENO, text, length) < 0) return;
}

__attribute__((noreturn)) static void refuse(const char* name, const char* value, const char* why) {
  settings_say("%s is '%s': %s", name, value, why);
  _exit(2);
}

static size_t limit_of(const char* text) {
  char*              end = (char*)text;
  unsigned long long value = *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : 0;
  const char*        units = "KMG";
  const char*        unit = *end != 0 ? strchr(units, *end) : NULL;
  unsigned           shift = unit != NULL ? 10 * (unsigned)(unit - units + 1) : 0;
  if (value > LIMIT_MAX >> shift || value << shift < LIMIT_MIN || *(unit != NULL ? end + 1 : end) != 0) {
    refuse("TRACE_LIMIT", text, "it must be a number of bytes from 1M to 1024G, with K, M, G or no unit");
  }
  return (size_t)(value << shift);
}

static void set_pattern(settings_t* settings, const char* file) {
  size_t length = 0;
  if (*file != '/') { // the program may change its directory
    if (getcwd(settings->pattern, sizeof(settings->pattern)) == NULL) refuse("TRACE_FILE", file, strerror(errno));
    length = strlen(settings->pattern);
    settings->pattern[length++] = '/';
  }
  if (length + strlen(file) + 20 >= sizeof(settings->pattern)) refuse("TRACE_FILE", file, "it is too long");
  memcpy(settings->pattern + length, file, strlen(file) + 1);
  const char* percent = strchr(settings->pattern, '%');
  settings->is_per_process = percent != NULL;
  if (percent != NULL && (percent[1] != 'p' || strchr(percent + 1, '%') != NULL)) {
    refuse("TRACE_FILE", file, "only one % may be there, as %p");
  }
}

bool settings_read(settings_t* settings) {
  const char* program = getenv("TRACE_PROGRAM");
  const char* file = getenv("TRACE_FILE");
  const char* limit = getenv("TRACE_LIMIT");
  if (file == NULL || *file == 0) refuse("TRACE_FILE", "", "it must name the file for the trace");
  settings->limit = limit_of(limit != NULL ? limit : LIMIT_DEFAULT);
  set_pattern(settings, file);
  return program == NULL || strcmp(program, program_invocation_short_name) == 0;
}

// By its name, since programs close descriptors that they do not know.
static int open_again(const settings_t* settings, int* fd) {
  struct stat status;
  *fd = open(settings->file, O_RDWR | O_CLOEXEC);
  if (*fd < 0) return errno;
  if (fstat(*fd, &status) == 0 && status.st_dev == settings->device && status.st_ino == settings->inode) return 0;
  close(*fd);
  return ENOENT;
}

// Not ftruncate: a full disk would end the program with SIGBUS. At the limit on the size of files the system sends a
// signal that would end it, too.
static int reserve(int fd, size_t size) {
  struct rlimit most;
  if (getrlimit(RLIMIT_FSIZE, &most) == 0 && size > most.rlim_cur) return EFBIG;
  return posix_fallocate(fd, 0, (off_t)size);
}

int settings_grow(const settings_t* settings, size_t size) {
  int fd, error = open_again(settings, &fd);
  if (error != 0) return error;
  error = reserve(fd, size);
  close(fd);
  return error;
}

int settings_cut(const settings_t* settings, size_t size) {
  int fd, error = open_again(settings, &fd);
  if (error != 0) return error;
  error = ftruncate(fd, (off_t)size) != 0 ? errno : 0;
  close(fd);
  return error;
}

// Another process, usually a parent, records into that file.
static bool is_in_progress(const char* file) {
  trace_header_t header = {.is_finished = 1};
  int            fd = open(file, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  bool is_read = read(fd, &header, sizeof(header)) == (ssize_t)sizeof(header);
  close(fd);
  return is_read && header.is_finished == 0;
}

// A file of its own. What the process has executed before has made one already: with %p there are more names.
static int create(settings_t* settings) {
  const char* percent = settings->is_per_process ? strchr(settings->pattern, '%') : NULL;
  size_t      before = percent != NULL ? (size_t)(percent - settings->pattern) : strlen(settings->pattern);
  int         fd = -1;
  memcpy(settings->file, settings->pattern, before);
  settings->file[before] = 0;
  for (int n = 1; n <= EXECUTIONS_MAX; n++) {
    char number[32] = "";
    if (n > 1) snprintf(number, sizeof(number), ".%d", n);
    if (percent != NULL) {
      snprintf(settings->file + before, sizeof(settings->file) - before, "%d%s%s", (int)getpid(), number, percent + 2);
    }
    fd = open(settings->file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0 || errno != EEXIST || percent == NULL) break;
  }
  return fd;
}

trace_header_t* settings_create(settings_t* settings, bool must_be) {
  struct stat status;
  int         fd = create(settings);
  if (fd < 0 && errno == EEXIST) {
    if (!is_in_progress(settings->file)) settings_say("%s is there already: nothing is recorded", settings->file);
    return NULL;
  }
  int error = fd < 0 || fstat(fd, &status) != 0 ? errno : reserve(fd, LIMIT_MIN);
  if (error != 0 && must_be) refuse("TRACE_FILE", settings->file, strerror(error));
  void* p = MAP_FAILED;
  if (error == 0) {
    settings->device = status.st_dev;
    settings->inode = status.st_ino;
    p = mmap(NULL, settings->limit, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    error = errno;
  }
  if (p == MAP_FAILED && must_be)
    refuse("TRACE_LIMIT", getenv("TRACE_LIMIT") != NULL ? getenv("TRACE_LIMIT") : LIMIT_DEFAULT, strerror(error));
  if (fd >= 0) close(fd);
  if (p != MAP_FAILED) return p;
  settings_say("%s: %s; process %d is not recorded, and goes on", settings->file, strerror(error), (int)getpid());
  return NULL;
}

// Kernels before 4.14 keep what is in the page.
atomic_bool* settings_flag(void) {
  static atomic_bool kept;
  void*              page = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return &kept;
  madvise(page, 1, MADV_WIPEONFORK);
  return page;
}
