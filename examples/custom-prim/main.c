// Uses an allocator whose memory is a static array of 4 MiB: it fills the array until there is no more, and gives it back.
// It prints by write(2) alone.  Exit status 0: all went as docs/design/porting.md says.
#include <errno.h>
#include <mimalloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

static bool is_wrong;

static void say(const char* text) {
  if (write(1, text, strlen(text)) < 0) is_wrong = true;
}

static void check(bool is_so, const char* what) {
  if (!is_so) is_wrong = true;
  say(is_so ? "ok      " : "WRONG   ");
  say(what);
  say("\n");
}

static void say_number(const char* before, size_t n, const char* after) {
  char digits[24], *p = digits + sizeof(digits) - 1;
  for (*p = 0; n > 0 || *p == 0; n /= 10) *--p = (char)('0' + n % 10);
  say(before);
  say(p);
  say(after);
}

static bool reads_as(const unsigned char* p, size_t size, unsigned char byte) {
  for (size_t i = 0; i < size; i++) {
    if (p[i] != byte) return false;
  }
  return true;
}

typedef struct node_s {
  struct node_s* next;
} node_t;

// Takes blocks until there are none, in a list.
static size_t take_all(node_t** list, size_t size) {
  size_t n = 0;
  errno = 0;
  for (node_t* node; (node = (node_t*)mi_malloc(size)) != NULL; n++) {
    memset(node, 0xA5, size);
    node->next = *list;
    *list = node;
  }
  return n;
}

static bool free_all(node_t* list, size_t size) {
  bool is_whole = true;
  for (node_t* next; list != NULL; list = next) {
    next = list->next;
    if (!reads_as((unsigned char*)(list + 1), size - sizeof(node_t), 0xA5)) is_whole = false;
    mi_free(list);
  }
  return is_whole;
}

int main(void) {
  node_t *list = NULL, *other = NULL;
  char*   text = mi_strdup("memory from a static array");
  check(text != NULL && strcmp(text, "memory from a static array") == 0, "strdup");
  size_t n = take_all(&list, 1000);
  check(errno == ENOMEM, "ENOMEM when the array is used up");
  say_number("        ", n, " blocks of 1000 bytes\n");
  check(n * 1000 > 3u << 20, "of 4 MiB, three quarters are the program's");
  check(mi_malloc(1u << 20) == NULL && mi_malloc((size_t)1 << 30) == NULL, "nor is there a large block");
  check(free_all(list, 1000), "all blocks hold what was written to them");
  list = NULL;
  size_t again = take_all(&list, 1000);
  check(again >= n, "the same again after they were freed");
  free_all(list, 1000);
  mi_collect(true);
  size_t n_large = take_all(&other, 300000);
  say_number("        ", n_large, " blocks of 300000 bytes\n");
  check(n_large >= 8, "what small blocks had serves large ones");
  free_all(other, 300000);
  unsigned char* zero = (unsigned char*)mi_calloc(1000, 1000);
  check(zero != NULL && reads_as(zero, 1000000, 0), "calloc reads as zero where there was something else");
  zero = (unsigned char*)mi_realloc(zero, 2000000);
  check(zero != NULL && reads_as(zero, 1000000, 0), "realloc to twice the size");
  mi_free(zero);
  void* aligned = mi_malloc_aligned(100, 65536);
  check(aligned != NULL && (uintptr_t)aligned % 65536 == 0, "aligned to 64 KiB");
  mi_free(aligned);
  mi_free(text);
  return is_wrong ? 1 : 0;
}
