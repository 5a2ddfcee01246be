// Proves: a small program has little of the library's code in its memory: what it runs lies together (cmake/text-order.cmake).
// And starting the library makes few of its own OS pages private.
#define _GNU_SOURCE
#include "../check.h"
#include <link.h>
#include "../modes/support.h"

static char library[4096]; // its path
static char maps[256 * 1024];

static int find_library(struct dl_phdr_info* info, size_t size, void* arg) {
  (void)size;
  (void)arg;
  const char* name = strrchr(info->dlpi_name, '/');
  if (name == NULL || strncmp(name, "/libmimalloc", strlen("/libmimalloc")) != 0) return 0;
  snprintf(library, sizeof(library), "%s", realpath(info->dlpi_name, NULL));
  return 1;
}

// What smaps says of a field, in bytes, over the library's mappings with that permission ("r-xp").
static size_t library_sum(const char* permission, const char* field) {
  size_t sum = 0;
  bool   counts = false;
  CHECK(read_file("/proc/self/smaps", maps, sizeof(maps)) > 0);
  for (const char* line = maps; line != NULL && *line != 0; line = strchr(line, '\n'), line += (line != NULL)) {
    char          mode[8], path[4096] = "";
    unsigned long from, to;
    if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %4095[^\n]", &from, &to, mode, path) >= 3)
      counts = (strcmp(path, library) == 0 && strcmp(mode, permission) == 0);
    else if (counts && strncmp(line, field, strlen(field)) == 0) sum += strtoull(line + strlen(field), NULL, 10) * KiB;
  }
  return sum;
}

// What any program does: blocks of some sizes, longer and shorter, and free again.
static void use(void) {
  void* p[200];
  for (size_t i = 0; i < COUNT_OF(p); i++) {
    p[i] = malloc(16 * i + 1);
    CHECK(p[i] != NULL);
    memset(p[i], 1, 16 * i + 1);
  }
  for (size_t i = 0; i < COUNT_OF(p); i++) p[i] = realloc(p[i], 40 * i + 1);
  for (size_t i = 0; i < COUNT_OF(p); i++) free(p[i]);
  free(calloc(100, 100));
}

int main(void) {
  use();
  dl_iterate_phdr(&find_library, NULL);
  if (library[0] == 0) return 77;
  size_t size = library_sum("r-xp", "Size:"), text = library_sum("r-xp", "Rss:");
  size_t is_private = library_sum("rw-p", "Anonymous:") + library_sum("r--p", "Anonymous:");
  printf("of %zu KiB of code %zu are resident; %zu KiB of data are private\n", size / KiB, text / KiB,
         is_private / KiB);
  CHECK(is_private <= 16 * KiB);
#if defined(MI_TEST_TEXT_ORDER)
  // 48 KiB of functions, and what the kernel maps around them.
  if (sysconf(_SC_PAGESIZE) <= 4096 && size > 160 * KiB) CHECK(text <= 144 * KiB);
#endif
  return check_result();
}
