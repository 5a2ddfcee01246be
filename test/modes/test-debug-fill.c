// Proves: debug builds fill new memory, so that reads of it are noticed, without backing all of a large block; and large
// blocks cost memory for what is written to them only, in every build.
#include "../check.h"
#include "../api/entries.h"

enum { uninit = 0xD0 };

// The thread sanitizer looks at each byte that is filled.
static const size_t whole_max = (TEST_TSAN ? 256 * KiB : 16 * MiB);

static bool is_filled(const uint8_t* p, size_t from, size_t to) {
  for (size_t i = from; i < to; i++) {
    if (p[i] != uninit) return false;
  }
  return true;
}

// Up to 16 MiB all of it, of larger ones the first and the last MiB.
static void check_fill(uint8_t* p, size_t size) {
  size_t end = whole_max / 16;
  if (size <= whole_max) CHECK_FOR(is_filled(p, 0, size), "%zu bytes", size);
  else CHECK_FOR(is_filled(p, 0, end) && is_filled(p, size - end, size), "%zu bytes", size);
}

static void check_sizes(mi_heap_t* heap) {
  for (size_t size = 1; size <= 40 * MiB; size = size * 3 + 1) {
    for (size_t round = 0; round < 3; round++) { // fresh memory, and used
      for (size_t alignment = 16; alignment <= 1 * MiB; alignment *= 256) {
        uint8_t* p = (uint8_t*)mi_heap_malloc_aligned(heap, size, alignment);
        if (MI_FILL_NEW) check_fill(p, size);
        memset(p, 0xAB, size);
        mi_free(p);
        p = (uint8_t*)mi_heap_zalloc_aligned(heap, size, alignment);
        CHECK_FOR(is_zero(p, 0, size), "%zu bytes", size);
        memset(p, 0xAB, size);
        mi_free(p);
      }
    }
  }
}

// What is resident is what was written to, whatever the size.  One that is not so ends it: the next would be larger.
static void check_huge(void) {
  bool is_right = true;
  for (size_t size = 64 * MiB; is_right && size != 0 && size <= PTRDIFF_MAX; size *= 4) {
    for (size_t is_zeroed = 0; is_zeroed < 2; is_zeroed++) {
      size_t before = rss_now();
      char*  p = (char*)(is_zeroed ? mi_calloc(1, size) : mi_malloc(size));
      if (p == NULL) continue; // no address space, or the system does not overcommit
      p[size / 2] = 1;
      is_right = is_right && rss_within("resident with a huge block", minus(rss_now(), before), 8 * MiB);
      mi_free(p);
      mi_collect(true); // the next is from clean memory
      is_right = is_right && rss_within("resident after a huge block", minus(rss_now(), before), 8 * MiB);
      CHECK_FOR(is_right, "%zu bytes%s", size, is_zeroed ? ", zeroed" : "");
    }
  }
}

int main(int argc, char** argv) {
  test_seed(argc, argv);
  mi_option_disable(mi_option_show_errors);
  if (!MI_FILL_NEW) test_skip("fills", "this build has none");
  if (TEST_SANITIZED) test_skip("huge blocks", "the sanitizer marks each byte");
  else check_huge();
  mi_heap_t* heap = mi_heap_new();
  check_sizes(NULL);
  check_sizes(heap);
  mi_heap_delete(heap);
  return check_result();
}
