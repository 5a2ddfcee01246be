// Proves: what the C library allocates for itself comes from the library, goes back to it, and can be resized by it.
#define _GNU_SOURCE
#include "../check.h"
#include "../modes/support.h"
#include <mimalloc.h>

static void check_block(const char* what, void* p, size_t size) {
  CHECK_FOR(p != NULL && mi_is_in_heap_region(p) && mi_usable_size(p) >= size, "%s", what);
}

// Formats a text of so many characters.
static void check_formatted(size_t length) {
  char* text = NULL;
  CHECK_EQ(asprintf(&text, "%*d", (int)length, 7), (int)length);
  check_block("asprintf", text, length + 1);
  CHECK(text[length - 1] == '7' && text[length] == 0);
  text = (char*)realloc(text, 3 * length);
  check_block("realloc of asprintf", text, 3 * length);
  CHECK(text[length - 1] == '7');
  free(text);
}

static void check_stream(void) {
  char*  text = NULL;
  size_t length = 0;
  FILE*  stream = open_memstream(&text, &length);
  CHECK(stream != NULL);
  if (stream == NULL) return;
  check_block("open_memstream", stream, 1);
  for (int i = 0; i < 10000; i++) fprintf(stream, "%d ", i % 10);
  CHECK_EQ(fclose(stream), 0);
  check_block("its text", text, 20001);
  CHECK(length == 20000 && strncmp(text, "0 1 2 ", 6) == 0);
  free(text);
}

static void check_copies(size_t length) {
  char* text = (char*)malloc(length + 1);
  memset(text, 'x', length);
  text[length] = 0;
  char* copy = strdup(text);
  check_block("strdup", copy, length + 1);
  char* part = strndup(text, length / 2);
  check_block("strndup", part, length / 2 + 1);
  CHECK(strcmp(copy, text) == 0 && strlen(part) == length / 2);
  mi_free(copy);
  free(part);
  free(text);
}

// All that is in use afterwards was in use before.
static bool count_block(const mi_heap_t* heap, const mi_heap_area_t* area, void* block, size_t size, void* arg) {
  (void)heap, (void)area, (void)size;
  if (block != NULL) ++*(size_t*)arg;
  return true;
}

static size_t blocks_in_use(void) {
  size_t n = 0;
  mi_heap_visit_blocks(mi_heap_get_default(), true, &count_block, &n);
  return n;
}

int main(int argc, char** argv) {
  test_seed(argc, argv);
  check_formatted(100);
  check_stream();
  size_t before = blocks_in_use();
  CHECK(before < 100);
  for (size_t length = 10; length <= 1000 * KiB; length *= 10) {
    check_formatted(length);
    check_copies(length);
  }
  for (int i = 0; i < 100; i++) check_stream();
  CHECK_EQ(blocks_in_use(), before);
  return check_result();
}
