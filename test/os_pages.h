// Large OS pages that the system keeps apart, for tests that need some.
//
// How many there are is a setting of the machine, which only MI_TEST_SYSTEM=1 lets a test change; it is put back.
#pragma once

#include "modes/support.h"

enum { os_pages_large = 2048, os_pages_huge = 1048576 }; // their size in KiB

typedef struct os_pages_s {
  size_t kib, before;
  bool   is_changed;
} os_pages_t;

static inline size_t os_pages_read(size_t kib, const char* what) {
  char path[128], text[64];
  snprintf(path, sizeof(path), "/sys/kernel/mm/hugepages/hugepages-%zukB/%s", kib, what);
  return read_file(path, text, sizeof(text)) == 0 ? 0 : (size_t)strtoull(text, NULL, 10);
}

static inline size_t os_pages_free(size_t kib) {
  size_t n_free = os_pages_read(kib, "free_hugepages"), promised = os_pages_read(kib, "resv_hugepages");
  return n_free - (promised < n_free ? promised : n_free);
}

static inline bool os_pages_write(size_t kib, size_t n) {
  char path[128], text[32];
  snprintf(path, sizeof(path), "/sys/kernel/mm/hugepages/hugepages-%zukB/nr_hugepages", kib);
  int  length = snprintf(text, sizeof(text), "%zu\n", n);
  int  fd = open(path, O_WRONLY);
  bool is_written = (fd >= 0 && write(fd, text, (size_t)length) == length);
  if (fd >= 0) close(fd);
  return is_written;
}

// Are there n to n + 8 free ones now?  Says so if not.
static inline bool os_pages_begin(os_pages_t* pages, size_t kib, size_t n) {
  size_t n_free = os_pages_free(kib);
  pages->kib = kib;
  pages->before = os_pages_read(kib, "nr_hugepages");
  pages->is_changed =
      (n_free < n && test_env("MI_TEST_SYSTEM", 0) != 0 && os_pages_write(kib, pages->before + n - n_free));
  n_free = os_pages_free(kib);
  if (n_free >= n && n_free <= n + 8) return true;
  test_skip(kib == os_pages_large ? "large OS pages" : "huge OS pages",
            n_free < n ? "the system has too few (MI_TEST_SYSTEM=1 sets some aside)"
                       : "the system has many for others");
  if (pages->is_changed) os_pages_write(kib, pages->before);
  return false;
}

static inline void os_pages_end(const os_pages_t* pages) {
  if (pages->is_changed) os_pages_write(pages->kib, pages->before);
}
