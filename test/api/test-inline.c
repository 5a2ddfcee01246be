// Proves: allocation through a handle gives blocks of the right heap, of every small size, as the ordinary functions do; on
// any thread that asks for a handle of its own, in its last destructors too; and memory stays bounded.
#include "../check.h"
#include <mimalloc-inline.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include "../modes/support.h"

static void check_heap(mi_heap_t* heap, mi_inline_t handle) {
  static void* p[2000];
  for (size_t round = 0; round < 3; round++) {
    for (size_t i = 0; i < COUNT_OF(p); i++) {
      size_t size = i % (MI_SMALL_SIZE_MAX + 200);
      p[i] = mi_inline_malloc(handle, size);
      CHECK(p[i] != NULL && mi_heap_of(p[i]) == heap && mi_usable_size(p[i]) >= size);
      memset(p[i], (int)i, size);
    }
    for (size_t i = 0; i < COUNT_OF(p); i++) {
      size_t size = i % (MI_SMALL_SIZE_MAX + 200);
      for (size_t k = 0; k < size; k++) {
        if (((unsigned char*)p[i])[k] != (unsigned char)i) {
          CHECK(!"another block lies in the way");
          break;
        }
      }
      mi_free(p[i]);
    }
  }
}

static void* run(void* arg) {
  mi_heap_t* heap = (mi_heap_t*)arg;
  check_heap(heap, mi_inline_of(heap));
  check_heap(mi_heap_main(), mi_inline_of(NULL));
  return NULL;
}

static void check_bounded(mi_inline_t handle) {
  size_t before = rss_now();
  for (size_t i = 0; i < 10 * 1000 * 1000; i++) {
    void* p = mi_inline_malloc(handle, 1 + i % 512);
    *(volatile char*)p = 1;
    mi_free(p);
  }
  CHECK(rss_within("growth over 10^7 blocks one after the other", minus(rss_now(), before), 4 * MiB));
}

// ---- the end of a thread ------------------------------------------------------------------------------------------------

// ThreadSanitizer takes a thread down in the last pass, and then must not be called any more.
enum { n_passes = TEST_TSAN ? 2 : PTHREAD_DESTRUCTOR_ITERATIONS };

static pthread_key_t key;
static size_t        n_passed;

// In the last pass the thread has given back what it had: handles lead to the ordinary functions then, which still allocate.
static void use_late(void* heap) {
  mi_heap_t* const heaps[] = {(mi_heap_t*)heap, mi_heap_main()};
  for (size_t i = 0; i < COUNT_OF(heaps); i++) {
    mi_inline_t handle = mi_inline_of(i == 0 ? heaps[i] : NULL);
    for (size_t size = 0; size < 3 * MI_SMALL_SIZE_MAX; size += 100) {
      void* p = mi_inline_malloc(handle, size);
      CHECK_FOR(p != NULL && mi_heap_of(p) == heaps[i], "pass %zu: %zu bytes of heap %zu", n_passed, size, i);
      mi_free(p);
    }
  }
  if (++n_passed < n_passes) pthread_setspecific(key, heap);
}

static void* leave_late(void* heap) {
  mi_free(mi_inline_malloc(mi_inline_of((mi_heap_t*)heap), 10));
  pthread_setspecific(key, heap);
  return NULL;
}

static void check_late(mi_heap_t* heap) {
  pthread_t thread;
  CHECK_EQ(pthread_key_create(&key, &use_late), 0);
  CHECK_EQ(pthread_create(&thread, NULL, &leave_late, heap), 0);
  pthread_join(thread, NULL);
  CHECK_EQ(n_passed, n_passes);
}

int main(void) {
  pthread_t  thread;
  mi_heap_t* heap = mi_heap_new();
  check_heap(mi_heap_main(), mi_inline_of(NULL));
  check_heap(heap, mi_inline_of(heap));
  for (size_t i = 0; i < 5; i++) {
    CHECK_EQ(pthread_create(&thread, NULL, &run, heap), 0);
    pthread_join(thread, NULL);
  }
  check_late(heap);
  check_bounded(mi_inline_of(NULL));
  errno = 0;
  volatile size_t absurd = SIZE_MAX;
  CHECK(mi_inline_malloc(mi_inline_of(NULL), absurd) == NULL && errno == ENOMEM);
  void* p = mi_inline_malloc_slow(mi_inline_of(heap), 100);
  CHECK(mi_heap_of(p) == heap);
  mi_heap_destroy(heap);
  mi_inline_t gone = mi_inline_of(heap); // a heap that is not in use
  errno = 0;
  CHECK(mi_inline_malloc(gone, 8) == NULL && errno == ENOMEM);
  return check_result();
}
