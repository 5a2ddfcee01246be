// The program of replaced.py: with -DFORM=n one form of operator new or delete that replaces the default, without it the
// program that calls all forms and prints which replaced ones that reached.
//
// A replaced form says its name.  A delete says so too if its block came from no replaced new, as it does where only some
// forms are replaced.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

void  said(const char* name);
void* made(const char* name, std::size_t size, std::size_t alignment);
void  ended(const char* name, void* p);

#if defined(FORM)

  #define MAKE(arguments, alignment, name) \
    void* operator arguments { \
      return made(name, n, alignment); \
    }
  #define END(arguments, name) \
    void operator arguments noexcept { \
      ended(name, p); \
    }
  #define AL static_cast<std::size_t>(a)
using std::align_val_t;
using std::nothrow_t;
using std::size_t;

// clang-format off
  #if FORM == 0
MAKE(new(size_t n), 16, "new")
  #elif FORM == 1
MAKE(new[](size_t n), 16, "new[]")
  #elif FORM == 2
MAKE(new(size_t n, const nothrow_t&) noexcept, 16, "new-nothrow")
  #elif FORM == 3
MAKE(new[](size_t n, const nothrow_t&) noexcept, 16, "new[]-nothrow")
  #elif FORM == 4
MAKE(new(size_t n, align_val_t a), AL, "new-aligned")
  #elif FORM == 5
MAKE(new[](size_t n, align_val_t a), AL, "new[]-aligned")
  #elif FORM == 6
MAKE(new(size_t n, align_val_t a, const nothrow_t&) noexcept, AL, "new-aligned-nothrow")
  #elif FORM == 7
MAKE(new[](size_t n, align_val_t a, const nothrow_t&) noexcept, AL, "new[]-aligned-nothrow")
  #elif FORM == 8
END(delete(void* p), "delete")
  #elif FORM == 9
END(delete[](void* p), "delete[]")
  #elif FORM == 10
END(delete(void* p, const nothrow_t&), "delete-nothrow")
  #elif FORM == 11
END(delete[](void* p, const nothrow_t&), "delete[]-nothrow")
  #elif FORM == 12
END(delete(void* p, size_t), "delete-sized")
  #elif FORM == 13
END(delete[](void* p, size_t), "delete[]-sized")
  #elif FORM == 14
END(delete(void* p, align_val_t), "delete-aligned")
  #elif FORM == 15
END(delete[](void* p, align_val_t), "delete[]-aligned")
  #elif FORM == 16
END(delete(void* p, size_t, align_val_t), "delete-sized-aligned")
  #elif FORM == 17
END(delete[](void* p, size_t, align_val_t), "delete[]-sized-aligned")
  #elif FORM == 18
END(delete(void* p, align_val_t, const nothrow_t&), "delete-aligned-nothrow")
  #elif FORM == 19
END(delete[](void* p, align_val_t, const nothrow_t&), "delete[]-aligned-nothrow")
  #endif
// clang-format on

#else

  #include <algorithm>
  #include <string>
  #include <vector>

  #define N_BLOCKS 256

static char        log_text[4096];
static bool        is_logging, throws_int;
static int         n_failures; // of replaced forms that are to come
static const void* blocks[N_BLOCKS];

extern "C" __attribute__((weak)) bool mi_is_in_heap_region(const void* p) noexcept;

void said(const char* name) {
  if (is_logging) strncat(strncat(log_text, " ", 2), name, 64);
}

static const void** slot_of(const void* p) {
  for (const void*& block : blocks) {
    if (block == p) return &block;
  }
  return nullptr;
}

void* made(const char* name, std::size_t size, std::size_t alignment) {
  said(name);
  if (n_failures > 0) {
    n_failures--;
    if (strstr(name, "nothrow") != nullptr) return nullptr;
    if (throws_int) throw 7;
    throw std::bad_alloc();
  }
  void* p = nullptr;
  if (posix_memalign(&p, alignment, size) != 0) abort();
  const void** slot = slot_of(nullptr);
  if (slot != nullptr) *slot = p;
  return p;
}

void ended(const char* name, void* p) {
  said(name);
  if (p == nullptr) return;
  const void** slot = slot_of(p);
  if (slot != nullptr) *slot = nullptr;
  else said("(of another)");
  free(p);
}

static void begin() {
  log_text[0] = 0;
  is_logging = true;
}

static void end(const char* what) {
  is_logging = false;
  printf("%s:%s\n", what, log_text[0] != 0 ? log_text : " -");
}

struct form {
  const char* name;
  void* (*make)();
  void (*end)(void* p);
};

  #define SIZE   100
  #define ALIGN  static_cast<std::align_val_t>(256)
  #define NEW(e) []() -> void* { return e; }
  #define DEL(e) [](void* p) { e; }

static const form plain[] = {
    {"delete", NEW(::operator new(SIZE)), DEL(::operator delete(p))},
    {"delete, sized", NEW(::operator new(SIZE)), DEL(::operator delete(p, SIZE))},
    {"delete, nothrow", NEW(::operator new(SIZE, std::nothrow)), DEL(::operator delete(p, std::nothrow))},
    {"delete of nothrow", NEW(::operator new(SIZE, std::nothrow)), DEL(::operator delete(p))},
    {"delete[]", NEW(::operator new[](SIZE)), DEL(::operator delete[](p))},
    {"delete[], sized", NEW(::operator new[](SIZE)), DEL(::operator delete[](p, SIZE))},
    {"delete[], nothrow", NEW(::operator new[](SIZE, std::nothrow)), DEL(::operator delete[](p, std::nothrow))},
    {"aligned delete", NEW(::operator new(SIZE, ALIGN)), DEL(::operator delete(p, ALIGN))},
    {"aligned delete, sized", NEW(::operator new(SIZE, ALIGN)), DEL(::operator delete(p, SIZE, ALIGN))},
    {"aligned delete, nothrow", NEW(::operator new(SIZE, ALIGN, std::nothrow)),
     DEL(::operator delete(p, ALIGN, std::nothrow))},
    {"aligned delete[]", NEW(::operator new[](SIZE, ALIGN)), DEL(::operator delete[](p, ALIGN))},
    {"aligned delete[], sized", NEW(::operator new[](SIZE, ALIGN)), DEL(::operator delete[](p, SIZE, ALIGN))},
    {"aligned delete[], nothrow", NEW(::operator new[](SIZE, ALIGN, std::nothrow)),
     DEL(::operator delete[](p, ALIGN, std::nothrow))},
};

static void call(const form& f) {
  begin();
  void* p = f.make();
  end("new");
  if (p == nullptr) puts("NULL");
  if (&mi_is_in_heap_region != nullptr && !mi_is_in_heap_region(p)) puts("a block of another allocator");
  memset(p, 0xAB, SIZE);
  begin();
  f.end(p);
  end(f.name);
  begin();
  f.end(nullptr);
  end("of NULL");
}

// What a replaced form throws, and how often it was called till then.
static void call_failing(const form& f) {
  const char* result = "a block";
  void*       p = nullptr;
  begin();
  n_failures = 1;
  try {
    p = f.make();
    if (p == nullptr) result = "NULL";
  } catch (const std::bad_alloc&) {
    result = "bad_alloc";
  } catch (int) {
    result = "int";
  }
  n_failures = 0;
  end(result);
  if (p != nullptr) f.end(p);
  if (std::uncaught_exceptions() != 0) puts("an exception is still on its way");
}

// Thousands of exceptions that were caught leave nothing behind, neither memory nor a level of nesting.
static void call_often() {
  for (int i = 0; i < 20000; i++) {
    n_failures = 1;
    throws_int = i % 2 == 0;
    void* p = ::operator new(SIZE, std::nothrow);
    n_failures = 0;
    ::operator delete(p);
  }
  throws_int = false;
}

struct alignas(128) wide {
  char bytes[200];
};

static void use_library() {
  begin();
  static int numbers[5000];
  for (int i = 0; i < 5000; i++) numbers[i] = (i * 7919) % 5003;
  std::stable_sort(numbers, numbers + 5000);
  end(std::is_sorted(numbers, numbers + 5000) ? "sorted" : "not sorted");
  begin();
  {
    std::vector<std::string> strings(3, std::string(1000, 'x'));
    std::vector<wide>        wides(3);
  }
  end("strings");
  begin();
  wide* volatile w = new wide;
  delete w;
  int* volatile i = new int[100];
  delete[] i;
  end("expressions");
}

int main() {
  for (const form& f : plain) call(f);
  for (const form& f : plain) {
    throws_int = false;
    call_failing(f);
    throws_int = true;
    call_failing(f);
  }
  call_often();
  use_library();
  return 0;
}

#endif
