// As bugs.c, in C++: blocks of operator new, by containers and bare.
//
// With MI_TEST_API operator new is defined here, by mimalloc-new-delete.h; else whoever serves it does.
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#if defined(MI_TEST_API)
  #include <mimalloc-new-delete.h>
#endif

#define BUG __attribute__((noinline)) static

static volatile char sink;
static volatile int  hundred = 100; // the compiler is not to see the bugs

// memcheck: Invalid write of size 4 at .*: vector_overflow\(\) .* is 0 bytes after a block of size 400 alloc'd at .* by .*: vector_overflow\(\)
// asan: use-after-poison .*WRITE of size 4 .* in vector_overflow
BUG void vector_overflow() {
  std::vector<int> v(static_cast<size_t>(hundred));
  volatile int*    p = v.data();
  p[hundred] = 1;
}

// memcheck: Invalid read of size 1 at .*: string_outlived\(\) .* is 7 bytes inside a block of size 101 free'd
// asan: use-after-poison .*READ of size 1 .* in string_outlived
BUG void string_outlived() {
  const volatile char* p;
  {
    std::string s(static_cast<size_t>(hundred), 'x');
    p = s.c_str();
  }
  sink = p[7];
}

// memcheck: Invalid read of size 1 at .*: use_after_delete\(\) .* is 0 bytes inside a block of size 1 free'd
// asan: use-after-poison .*READ of size 1 .* in use_after_delete
BUG void use_after_delete() {
  auto           owner = std::make_unique<char>('x');
  volatile char* p = owner.get();
  owner.reset();
  sink = *p;
}

// memcheck: Invalid free\(\).* by .*: double_delete\(\) .* is 0 bytes inside a block of size 100 free'd
// asan: mimalloc: error: double free of the block 0x[0-9a-fA-F]+ of 112 bytes.* in double_delete.*SUMMARY: mimalloc: double-free
BUG void double_delete() {
  char* volatile p = new char[static_cast<size_t>(hundred)];
  delete[] p;
  delete[] p;
}

// memcheck: Invalid write of size 1 at .*: overflow_aligned\(\) .* is 0 bytes after a block of size 192 alloc'd
// asan: use-after-poison .*WRITE of size 1 .* in overflow_aligned
BUG void overflow_aligned() {
  struct alignas(64) wide_t {
    char bytes[192];
  };
  auto           wide = std::make_unique<wide_t>();
  volatile char* p = wide->bytes;
  p[92 + hundred] = 1;
}

// memcheck: nothing
// asan: nothing
BUG void nothing() {
  std::vector<std::string> v;
  for (int i = 0; i < 300; i++) v.push_back(std::string(static_cast<size_t>(i), 'x'));
  for (const std::string& s : v) sink = static_cast<char>(sink + s.c_str()[s.size()]);
}

struct bug_t {
  const char* name;
  void (*function)();
};

#define NAMED(function) {#function, function}

static const bug_t bugs[] = {
    NAMED(vector_overflow), NAMED(string_outlived),  NAMED(use_after_delete),
    NAMED(double_delete),   NAMED(overflow_aligned), NAMED(nothing),
};

int main(int argc, char** argv) {
  bool is_list = (argc == 2 && std::strcmp(argv[1], "list") == 0);
  for (const bug_t& bug : bugs) {
    if (is_list) std::puts(bug.name);
    if (argc == 2 && std::strcmp(argv[1], bug.name) == 0) {
      bug.function();
      return 0;
    }
  }
  if (!is_list) std::fprintf(stderr, "bugs_cxx NAME\n");
  return is_list ? 0 : 2;
}
