// Proves: an IFUNC resolver may allocate.  It runs while the loader still relocates the program, before thread-local
// variables have their initial values and before any constructor.
//
// Runs under preload, and with the allocator as a part of the program (MI_TEST_LINKED), from its object file or
// library.
#include "../check.h"
#include "../modes/support.h"

// A program that lld (19) has linked ends in such a resolver with the malloc of glibc, too: its calls are not relocated yet.
#if defined(__GLIBC__) && (defined(__x86_64__) || defined(__aarch64__)) && !defined(MI_TEST_LLD)

static char* early_block;

static int the_choice(int x) {
  return x + 1;
}

// A resolver may call only what is relocated already, which its own program is not: nothing but malloc and free.
static int (*resolve_chosen(void))(int) {
  char* p = (char*)malloc(300);
  if (p == NULL) return NULL;
  p[0] = p[299] = 1;
  free(p);
  early_block = (char*)malloc(5000);
  if (early_block == NULL) return NULL;
  early_block[0] = early_block[4999] = 2;
  return &the_choice;
}

int chosen(int x) __attribute__((ifunc("resolve_chosen")));

int main(int argc, char** argv) {
  test_seed(argc, argv);
  CHECK_EQ(chosen(1), 2);
  CHECK(early_block != NULL && early_block[0] == 2 && early_block[4999] == 2);
  // What was got so early is a block like any other.
  early_block = (char*)realloc(early_block, 100000);
  CHECK(early_block != NULL && early_block[0] == 2 && early_block[4999] == 2);
  free(early_block);
  for (size_t i = 0; i < 1000; i++) {
    char* p = (char*)malloc(i * 10);
    CHECK(p != NULL);
    free(p);
  }
  return check_result();
}

#else

int main(void) {
  test_skip("IFUNC", "needs glibc on x86-64 or AArch64, and another linker than lld");
  return skip_code;
}

#endif
