// Proves: what a small program runs of the library's code lies together (cmake/text-order.cmake): it is in few OS pages.  How
// many of its other pages the kernel maps beside those depends on the kernel, the file system and where the file is loaded.
// Where the loader leaves the code at a multiple of 64 KiB, all that is run is in the first 64 KiB of it, which is what the
// kernel maps at once.  And starting the library makes few of its own OS pages private.
#define _GNU_SOURCE
#include "../check.h"
#include <link.h>
#include <signal.h>
#include <sys/mman.h>
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

static char*        code; // the library's, while it cannot be run
static size_t       code_size, page_size;
static volatile int pages_run;
static size_t volatile furthest; // of their addresses that were run first, from where the code begins

// An OS page of the code is run for the first time.
static void on_fault(int signal_number, siginfo_t* info, void* context) {
  (void)context;
  size_t at = (size_t)((char*)info->si_addr - code), offset = at & ~(page_size - 1);
  if (offset >= code_size || mprotect(code + offset, page_size, PROT_READ | PROT_EXEC) != 0)
    signal(signal_number, SIG_DFL);
  else pages_run++;
  if (at > furthest) furthest = at;
}

static bool find_code(void) {
  unsigned long from, to;
  char          path[4096];
  FILE*         file = fopen("/proc/self/maps", "r");
  if (file == NULL) return false;
  while (code == NULL && fgets(maps, sizeof(maps), file) != NULL) {
    if (sscanf(maps, "%lx-%lx r-xp %*s %*s %*s %4095[^\n]", &from, &to, path) == 3 && strcmp(path, library) == 0)
      code = (char*)from, code_size = to - from;
  }
  fclose(file);
  return code != NULL;
}

// In how many KiB of code, in whole OS pages, the library runs for what any program does.
static size_t code_run(void) {
  struct sigaction action = {.sa_flags = SA_SIGINFO | SA_NODEFER};
  action.sa_sigaction = &on_fault;
  CHECK(sigaction(SIGSEGV, &action, NULL) == 0 && sigaction(SIGBUS, &action, NULL) == 0);
  CHECK(mprotect(code, code_size, PROT_READ) == 0);
  use();
  size_t count = (size_t)pages_run;
  CHECK(mprotect(code, code_size, PROT_READ | PROT_EXEC) == 0);
  return count * page_size / KiB;
}

int main(void) {
  page_size = (size_t)sysconf(_SC_PAGESIZE);
  dl_iterate_phdr(&find_library, NULL);
  if (library[0] == 0 || !find_code()) {
    printf("skipped: start-memory: the library is not found in /proc/self/maps\n");
    return 77;
  }
  use();
  size_t is_private = library_sum("rw-p", "Anonymous:") + library_sum("r--p", "Anonymous:");
  size_t run = code_run();
  printf("of %zu KiB of code %zu are run; %zu KiB of data are private\n", code_size / KiB, run, is_private / KiB);
  CHECK(is_private <= 16 * KiB);
  CHECK(run >= 4); // they are counted
#if defined(MI_TEST_TEXT_ORDER)
  bool is_aligned = ((uintptr_t)code % (64 * KiB) == 0);
  if (!is_aligned) printf("the loader has not aligned the code\n");
  if (page_size <= 4096 && code_size > 160 * KiB) CHECK(run <= 64); // 112 where they lie in the order of the source
  if (page_size <= 4096 && code_size > 160 * KiB && is_aligned)
    CHECK_FOR(furthest < 64 * KiB, "a function at %#zx", furthest);
#endif
  return check_result();
}
