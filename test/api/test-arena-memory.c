// Proves: the functions for arenas, and the options that reserve memory, do what the header says: results and ids, where
// blocks come from, what is refused; and the map of arenas can be printed while arenas come and go, into a function that
// allocates.
#include <sys/mman.h>
#include <sys/wait.h>

#include "../check.h"
#include "../sink.h"
#include "entries.h"

#if MI_API_LEVEL >= 3
static const mi_arena_id_t no_id = NULL;
#else
static const mi_arena_id_t no_id = -1;
#endif

// From a multiple of the alignment of arenas on: the system promises no more than an OS page.
static char* map_memory(size_t size, int protection) {
  size_t align = mi_arena_min_alignment();
  char*  p = (char*)mmap(NULL, size + align, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(p != (char*)MAP_FAILED);
  return p + (align - (uintptr_t)p % align) % align;
}

enum { block_bytes = (1 << 20) - MI_PADDING_SIZE }; // of 1 MiB, where they have padding in it

// Blocks of 1 MiB come from that arena until it is full.  Returns how many did.
static size_t fill_arena(mi_arena_id_t id, void** blocks, size_t max) {
  size_t n = 0;
  for (; n < max; n++) {
    blocks[n] = mi_malloc(block_bytes);
    CHECK(blocks[n] != NULL);
    if (!mi_arena_contains(id, blocks[n])) break;
    CHECK(mi_arena_contains(id, (char*)blocks[n] + block_bytes - 1));
    memset(blocks[n], (int)n, block_bytes);
  }
  if (n < max) mi_free(blocks[n]);
  return n;
}

static void check_filled(void** blocks, size_t n) {
  for (size_t i = 0; i < n; i++) {
    const unsigned char* p = (const unsigned char*)blocks[i];
    CHECK_FOR(p[0] == (unsigned char)i && p[block_bytes - 1] == (unsigned char)i, "block %zu", i);
    mi_free(blocks[i]);
  }
}

// ---- reserving ------------------------------------------------------------------------------------------------------

static void check_reserve(void) {
  static void*  blocks[80];
  mi_arena_id_t id = no_id, other = no_id;
  size_t        size = 1, other_size;
  CHECK_EQ(mi_reserve_os_memory_ex(64 * MiB, false, false, false, &id), 0);
  CHECK(id != no_id);
  char* start = (char*)mi_arena_area(id, &size);
  CHECK(start != NULL && size == 64 * MiB && is_aligned(start, mi_arena_min_alignment()));
  CHECK(mi_arena_contains(id, start) && mi_arena_contains(id, start + size - 1));
  CHECK(!mi_arena_contains(id, start - 1) && !mi_arena_contains(id, start + size) && !mi_arena_contains(id, NULL));
  CHECK_EQ(fill_arena(id, blocks, COUNT_OF(blocks)), 64);
  // An exclusive one is not for us, however full the other is.
  CHECK_EQ(mi_reserve_os_memory_ex(32 * MiB, true, false, true, &other), 0);
  CHECK(other != no_id && other != id);
  void* p = mi_malloc(MiB);
  CHECK(!mi_arena_contains(id, p) && !mi_arena_contains(other, p));
  mi_free(p);
  check_filled(blocks, 64);
  char* other_start = (char*)mi_arena_area(other, &other_size);
  CHECK_EQ(other_size, 32 * MiB);
  CHECK(other_start + other_size <= start || start + size <= other_start);
  CHECK(mi_arena_area(other, NULL) == other_start);
  // Refused: the id says so.
  CHECK_EQ(mi_reserve_os_memory_ex(POWER_OF_TWO(47), false, false, false, &other), ENOMEM);
  CHECK(other == no_id);
  CHECK_EQ(mi_reserve_os_memory(hidden(SIZE_MAX), true, true), ENOMEM);
  CHECK_EQ(mi_reserve_os_memory(hidden(SIZE_MAX) - MiB, false, false), ENOMEM);
  CHECK_EQ(mi_reserve_os_memory(1, false, false), 0); // rounded up
}

static void check_unknown_ids(void) {
  size_t size = 1;
  CHECK(mi_arena_area(no_id, &size) == NULL && size == 0);
  CHECK(mi_arena_area(0, &size) == NULL && size == 0);
  CHECK(!mi_arena_contains(no_id, &size) && !mi_arena_contains(0, NULL));
#if MI_API_LEVEL < 3
  for (int id = -5; id < 2000; id += (id > 300 ? 100 : 1)) {
    void* start = mi_arena_area(id, &size);
    CHECK((start == NULL) == (size == 0));
    if (id < 2) CHECK(start == NULL);
  }
  CHECK(mi_arena_area(0x7fffffff, &size) == NULL && mi_arena_area(-0x7fffffff, &size) == NULL);
#else
  CHECK(mi_arena_area(&size, &size) == NULL);
#endif
}

// ---- bringing memory ------------------------------------------------------------------------------------------------

static void check_manage(void) {
  static void*  blocks[80];
  mi_arena_id_t id = no_id, other = no_id;
  size_t        size;
  char*         memory = map_memory(64 * MiB, PROT_NONE);
  char*         start = memory + 12345; // anywhere
  CHECK(mi_arena_min_size() <= 32 * MiB && mi_arena_min_alignment() == 64 * KiB);
  CHECK(!mi_manage_os_memory(NULL, 64 * MiB, true, false, true, -1));
  CHECK(!mi_manage_os_memory(memory, mi_arena_min_size() - 1, false, false, true, -1));
  CHECK(mi_manage_os_memory_ex(start, 64 * MiB - 12345, false, false, true, -1, false, &id));
  char* area = (char*)mi_arena_area(id, &size);
  CHECK(area >= start && area < start + 64 * KiB && size >= 60 * MiB && area + size <= memory + 64 * MiB);
  CHECK(!mi_manage_os_memory_ex(memory + 20 * MiB, 8 * MiB, false, false, true, -1, false, &other));
  CHECK(other == no_id);
  CHECK_EQ(fill_arena(id, blocks, COUNT_OF(blocks)), size / MiB);
  check_filled(blocks, size / MiB);
  void* p = mi_malloc(8 * MiB);
  CHECK(mi_arena_contains(id, p) && !mi_manage_os_memory(p, 8 * MiB, true, false, true, -1));
  // It grows in place, and leaves when there is no room, with what is in it.
  memset(p, 3, 8 * MiB);
  char* q = (char*)mi_realloc(p, 16 * MiB);
  CHECK(MI_TRACK || q == p); // for tools it is copied
  memset(q, 3, 16 * MiB);
  q = (char*)mi_realloc(q, 100 * MiB);
  CHECK(!mi_arena_contains(id, q) && q[0] == 3 && q[16 * MiB - 1] == 3);
  mi_free(q);
}

// Garbage that is pinned: calloc is zero all the same.
static void check_pinned(void) {
  static void*  blocks[80];
  mi_arena_id_t id = no_id;
  char*         memory = map_memory(32 * MiB, PROT_READ | PROT_WRITE);
  memset(memory, 0xEE, 32 * MiB);
  CHECK(mi_manage_os_memory_ex(memory, 32 * MiB, true, true, false, -1, false, &id));
  for (size_t i = 0; i < 300; i++) {
    mi_free(blocks[i % 80]);
    blocks[i % 80] = mi_calloc(1, 400 * KiB);
    CHECK(is_zero(blocks[i % 80], 0, 400 * KiB));
    if (i < 60) CHECK(mi_arena_contains(id, blocks[i % 80]));
    memset(blocks[i % 80], 0xDD, 400 * KiB);
  }
}

typedef struct counts_s {
  char*  start;
  size_t size, n_commits, n_decommits, committed;
  bool   refuses;
} counts_t;

static bool count_commits(bool commit, void* start, size_t size, bool* is_zero, void* arg) {
  counts_t* counts = (counts_t*)arg;
  CHECK((char*)start >= counts->start && (char*)start + size <= counts->start + counts->size);
  if (counts->refuses) return false;
  if (commit) {
    counts->n_commits++;
    counts->committed += size;
    CHECK_EQ(mprotect(start, size, PROT_READ | PROT_WRITE), 0);
    if (is_zero != NULL) *is_zero = true;
  }
  else {
    counts->n_decommits++;
    counts->committed -= size;
    CHECK_EQ(madvise(start, size, MADV_DONTNEED), 0);
    CHECK_EQ(mprotect(start, size, PROT_NONE), 0);
  }
  return true;
}

static void check_commit_function(void) {
  void*           blocks[3];
  static counts_t counts;
  mi_arena_id_t   id = no_id;
  counts.start = map_memory(34 * MiB, PROT_NONE);
  counts.size = 34 * MiB;
  CHECK(mi_manage_memory(counts.start, counts.size, false, false, true, -1, false, &count_commits, &counts, &id));
  CHECK_EQ(counts.n_commits, 0);
  size_t n = 0;
  for (; n < 3; n++) {
    blocks[n] = mi_calloc(1, 9 * MiB);
    CHECK(mi_arena_contains(id, blocks[n]) && is_zero(blocks[n], 0, 9 * MiB));
    memset(blocks[n], 1, 9 * MiB);
  }
  CHECK(counts.n_commits >= 3 && counts.committed >= 27 * MiB && counts.committed <= 34 * MiB);
  size_t committed = counts.committed;
  while (n > 0) mi_free(blocks[--n]);
  mi_collect(true);
  CHECK(counts.n_decommits > 0 && committed - counts.committed >= 26 * MiB);
  counts.refuses = true; // other memory will do
  for (size_t i = 0; i < 4; i++) {
    void* p = mi_malloc(9 * MiB);
    CHECK(p != NULL && !mi_arena_contains(id, p));
    mi_free(p);
  }
  mi_collect(true);
  counts.refuses = false;
}

// ---- huge OS pages --------------------------------------------------------------------------------------------------

static bool system_has_huge_pages(void) {
  char text[64];
  if (read_file("/sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages", text, sizeof(text)) == 0) return false;
  return strtoul(text, NULL, 10) > 0;
}

static void check_huge(void) {
  mi_arena_id_t id = no_id;
  size_t        n = 1;
  CHECK_EQ(mi_reserve_huge_os_pages_at(0, -1, 0), 0);
  CHECK_EQ(mi_reserve_huge_os_pages_interleave(0, 0, 0), 0);
  CHECK_EQ(mi_reserve_huge_os_pages_at_ex(0, 0, 0, true, &id), 0);
  CHECK(id == no_id);
  CHECK_EQ(mi_reserve_huge_os_pages(0, 1.0, &n), 0);
  CHECK_EQ(n, 0);
  if (system_has_huge_pages()) {
    test_skip("refusals of huge OS pages", "the system has some");
    return;
  }
  CHECK_EQ(mi_reserve_huge_os_pages_at(1, -1, 10), ENOMEM);
  CHECK_EQ(mi_reserve_huge_os_pages_at_ex(2, 0, 10, false, &id), ENOMEM);
  CHECK(id == no_id);
  CHECK_EQ(mi_reserve_huge_os_pages_interleave(2, 2, 10), ENOMEM);
  CHECK_EQ(mi_reserve_huge_os_pages_interleave(SIZE_MAX, SIZE_MAX, 10), ENOMEM);
  n = 1;
  CHECK_EQ(mi_reserve_huge_os_pages(1, 0.1, &n), ENOMEM);
  CHECK_EQ(n, 0);
  CHECK_EQ(mi_reserve_huge_os_pages(1, 0.1, NULL), ENOMEM);
}

// ---- the map --------------------------------------------------------------------------------------------------------

static char   output[1 << 16];
static size_t output_length, output_lines;

// Allocates, as a function that builds a string might.
static void take_output(const char* text, void* arg) {
  void* p = mi_malloc(strlen(text) + 1);
  CHECK(p != NULL && arg == &output);
  memcpy(p, text, strlen(text) + 1);
  size_t n = strlen((char*)p);
  if (n < sizeof(output) - output_length) {
    memcpy(output + output_length, p, n + 1);
    output_length += n;
  }
  for (const char* s = text; *s != 0; s++) output_lines += (*s == '\n');
  mi_free(p);
}

static void print_map(void) {
  output_length = output_lines = 0;
  output[0] = 0;
  mi_arenas_print();
}

// The line of the map that begins with a row's offset, behind the head of that arena.
static const char* row_of(const char* head) {
  const char* at = strstr(output, head);
  at = (at == NULL ? NULL : strchr(at, '\n'));
  at = (at == NULL ? NULL : strstr(at, "0 MiB  "));
  return at == NULL ? NULL : at + strlen("0 MiB  ");
}

// How many of the first n characters of a row are c.
static size_t count_of(const char* row, size_t n, char c) {
  size_t count = 0;
  for (size_t i = 0; row != NULL && i < n && row[i] != 0; i++) count += (row[i] == c);
  return count;
}

static void check_map(void) {
  mi_arena_id_t id = no_id;
  char          head[64];
  size_t        size;
  mi_register_output(&take_output, &output);
  char* memory = map_memory(16 * MiB, PROT_READ | PROT_WRITE);
  CHECK(mi_manage_os_memory_ex(memory, 16 * MiB, true, true, true, 7, true, &id));
  char* start = (char*)mi_arena_area(id, &size);
  snprintf(head, sizeof(head), "0x%llX, %zu MiB", (unsigned long long)(uintptr_t)start, size / MiB);
  print_map();
  CHECK(output_lines > (sizeof(void*) > 4 ? 8 : 3) && strstr(output, head) != NULL &&
        strstr(output, "numa node 7") != NULL);
  CHECK(strstr(output, "exclusive") != NULL && strstr(output, "pinned") != NULL);
  CHECK(strstr(output, "used 0.0 MiB, free and backed 0.0 MiB, free 16.0 MiB") != NULL);
  // Blocks of a chunk and a half, one behind the other.
  memory = map_memory(18 * MiB, PROT_READ | PROT_WRITE);
  CHECK(mi_manage_os_memory_ex(memory, 18 * MiB, true, false, true, -1, false, &id));
  void* blocks[4];
  for (size_t i = 0; i < 4; i++) {
    blocks[i] = mi_malloc(3 * MiB);
    CHECK(mi_arena_contains(id, blocks[i]));
  }
  start = (char*)mi_arena_area(id, &size);
  snprintf(head, sizeof(head), "0x%llX, %zu MiB", (unsigned long long)(uintptr_t)start, size / MiB);
  print_map();
  const char* row = row_of(head);
  CHECK(row != NULL && strncmp(row, "XXXXX", 5) == 0);
  for (size_t i = 0; i < 4; i++) mi_free(blocks[i]);
  print_map();
  row = row_of(head);
  // They are free, and some of it may still be backed.
  CHECK(count_of(row, 6, 'o') + count_of(row, 6, '.') >= 3);
  mi_collect(true);
  print_map();
  row = row_of(head);
  CHECK(count_of(row, 6, 'o') == 0 && count_of(row, 6, '.') >= 5);
  size_t length = output_length;
  output_length = 0;
  mi_debug_show_arenas(); // the same
  CHECK_EQ(output_length, length);
  mi_register_output(NULL, NULL);
}

// ---- options --------------------------------------------------------------------------------------------------------

static void check_reserved_by_option(void) {
  void* p = mi_malloc(MiB);
  CHECK(p != NULL);
#if MI_API_LEVEL < 3
  size_t        size = 0;
  mi_arena_id_t id = 2; // the first
  CHECK(mi_arena_area(id, &size) != NULL && size == 96 * MiB);
  CHECK(mi_arena_contains(id, p));
#endif
}

static void check_not_reserved(void) {
#if MI_API_LEVEL < 3
  for (int id = 1; id < 10; id++) CHECK(mi_arena_area(id, NULL) == NULL);
#endif
  CHECK(mi_malloc(MiB) != NULL);
}

// Little address space at a time, and still as much memory as there is.
static void check_small_regions(void) {
  static void*  blocks[300];
  char          text[256];
  mi_arena_id_t id = no_id;
  CHECK_EQ(mi_reserve_os_memory_ex(20 * MiB, false, false, true, &id), 0); // a part of the first piece
  read_file("/proc/self/statm", text, sizeof(text));
  if (!TEST_SANITIZED && sizeof(size_t) > 4) CHECK(strtoull(text, NULL, 10) * 4096 < (uint64_t)8 * GiB);
  for (size_t i = 0; i < COUNT_OF(blocks); i++) {
    blocks[i] = mi_malloc(3 * MiB);
    CHECK(blocks[i] != NULL && !mi_arena_contains(id, blocks[i]) &&
          !mi_arena_contains(id, (char*)blocks[i] + 3 * MiB - 1));
    memset(blocks[i], (int)i, 4096);
  }
  for (size_t i = 0; i < COUNT_OF(blocks); i++) {
    CHECK(((unsigned char*)blocks[i])[4095] == (unsigned char)i && mi_is_in_heap_region(blocks[i]));
    mi_free(blocks[i]);
  }
}

static void check_only_reserved(void) {
  size_t n = 0;
  while (n < 200 && mi_malloc(block_bytes) != NULL) n++;
  CHECK_FOR(n >= 60 && n <= 80, "%zu blocks", n);
}

// Options that leave nothing are named, once.
static void check_refused(const char* want) {
  static sink_t said; // does not allocate
  mi_register_output(&sink_write, &said);
  mi_option_enable(mi_option_show_errors);
  mi_option_enable(mi_option_disallow_os_alloc);
  for (int i = 0; i < 3; i++) CHECK(mi_malloc(hidden(64 * MiB)) == NULL);
  mi_register_output(NULL, NULL);
  const char* found = strstr(said.text, want);
  CHECK_FOR(found != NULL && strstr(found + 1, want) == NULL, "no '%s', or twice, in '%s'", want, said.text);
}

static void check_none_reserved(void) {
  check_refused("no memory may be used: option 'disallow_os_alloc' is set, and none is reserved.");
}

static void check_none_allowed(void) {
  CHECK_EQ(mi_reserve_os_memory(64 * MiB, false, false), 0);
  mi_option_enable(mi_option_disallow_arena_alloc);
  check_refused("no memory may be used: option 'disallow_os_alloc' is set, and 'disallow_arena_alloc' too.");
}

// ---- each check in a process of its own: arenas stay, and options count when it starts --------------------------------

static const struct {
  void (*check)(void);
  const char* settings[2];
} children[] = {
    {&check_unknown_ids, {NULL, NULL}},
    {&check_huge, {NULL, NULL}},
    {&check_reserve, {NULL, NULL}},
    {&check_manage, {NULL, NULL}},
    {&check_pinned, {NULL, NULL}},
    {&check_commit_function, {NULL, NULL}},
    {&check_map, {NULL, NULL}},
    {&check_reserved_by_option, {"MIMALLOC_RESERVE_OS_MEMORY=96M", NULL}},
    {&check_reserved_by_option, {"MIMALLOC_RESERVE_OS_MEMORY=96M", "MIMALLOC_ARENA_EAGER_COMMIT=1"}},
    {&check_reserved_by_option, {"MIMALLOC_RESERVE_OS_MEMORY=96M", "MIMALLOC_ARENA_EAGER_COMMIT=0"}},
    {&check_reserved_by_option, {"MIMALLOC_RESERVE_OS_MEMORY=96M", "MIMALLOC_ALLOW_LARGE_OS_PAGES=1"}},
    {&check_not_reserved, {"MIMALLOC_RESERVE_OS_MEMORY=200T", NULL}},
    {&check_not_reserved, {"MIMALLOC_RESERVE_HUGE_OS_PAGES=0", NULL}},
    {&check_small_regions, {"MIMALLOC_ARENA_RESERVE=64M", NULL}},
    {&check_small_regions, {"MIMALLOC_ARENA_RESERVE=1", NULL}},
    {&check_only_reserved, {"MIMALLOC_RESERVE_OS_MEMORY=64M", "MIMALLOC_DISALLOW_OS_ALLOC=1"}},
    {&check_none_reserved, {NULL, NULL}},
    {&check_none_allowed, {NULL, NULL}},
};

static void run_child(size_t i, const char* program) {
  char number[16];
  snprintf(number, sizeof(number), "%zu", i + 1);
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    setenv("MI_TEST_CHILD", number, 1);
    for (size_t k = 0; k < 2 && children[i].settings[k] != NULL; k++) putenv((char*)(uintptr_t)children[i].settings[k]);
    char* arguments[] = {(char*)(uintptr_t)program, NULL};
    test_exec(arguments, environ);
    _exit(99);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  CHECK_FOR(status == 0, "check %zu (%s): status %x", i, children[i].settings[0], (unsigned)status);
}

int main(int argc, char** argv) {
  watchdog(120);
  if (MI_HARDENED) {
    test_skip("memory for arenas", "blocks of 1 MiB are guarded, and those are in memory of the allocator's own");
    return skip_code;
  }
  (void)argc;
  size_t child = test_env("MI_TEST_CHILD", 0);
  if (child > 0) {
    children[child - 1].check();
    return check_result();
  }
  if (!test_can_exec()) return skip_code;
  for (size_t i = 0; i < COUNT_OF(children); i++) run_child(i, argv[0]);
  return check_result();
}
