// Proves: from C++ the new-wrappers throw std::bad_alloc, call and obey the new-handler, unless what is wrong is the alignment
// or the pointer, and mi_stl_allocator serves the standard containers.
#include "../check.h"
#include "entries.h"
#include <cstdint>
#include <list>
#include <map>
#include <new>
#include <string>
#include <unordered_map>
#include <vector>

static int  n_handler_calls;
static bool handler_gives_up;

// A handler that frees nothing: it gives up after three calls, either by uninstalling itself or by an exception.
struct from_handler {};

static void count_call() {
  n_handler_calls++;
  if (n_handler_calls < 3) return;
  if (handler_gives_up) throw from_handler();
  std::set_new_handler(nullptr);
}

template <typename F>
static bool throws_bad_alloc(F f) {
  try {
    void* p = f();
    mi_free(p);
    return false;
  } catch (const std::bad_alloc&) {
    return true;
  }
}

static const size_t too_large = (size_t)1 << (sizeof(void*) == 8 ? 60 : 31);

static void check_throwing() {
  CHECK(throws_bad_alloc([] { return mi_new(hidden(too_large)); }));
  CHECK(throws_bad_alloc([] { return mi_new(hidden(SIZE_MAX)); }));
  CHECK(throws_bad_alloc([] { return mi_new_aligned(hidden(too_large), 64); }));
  CHECK(throws_bad_alloc([] { return mi_new_n(hidden(SIZE_MAX / 2), 3); }));
  CHECK(throws_bad_alloc([] { return mi_new_realloc(nullptr, hidden(too_large)); }));
  CHECK(throws_bad_alloc([] { return mi_new_reallocn(nullptr, hidden(SIZE_MAX / 2), 3); }));
  mi_heap_t* heap = mi_heap_new();
  CHECK(throws_bad_alloc([heap] { return mi_heap_alloc_new(heap, hidden(too_large)); }));
  CHECK(throws_bad_alloc([heap] { return mi_heap_alloc_new_n(heap, hidden(SIZE_MAX / 2), 3); }));
  CHECK(throws_bad_alloc([] { return mi_heap_alloc_new(nullptr, hidden(too_large)); }));
  void* of_heap = mi_heap_alloc_new_n(heap, 10, 10);
  CHECK(mi_heap_of(of_heap) == heap);
  mi_heap_destroy(heap);
  CHECK(mi_new_nothrow(hidden(too_large)) == nullptr);
  CHECK(mi_new_aligned_nothrow(hidden(too_large), 64) == nullptr);
  // a failed resize leaves the block
  char* p = (char*)mi_new(100);
  memset(p, 0x5A, 100);
  CHECK(throws_bad_alloc([p] { return mi_new_realloc(p, hidden(too_large)); }));
  CHECK(p[0] == 0x5A && p[99] == 0x5A);
  mi_free(p);
}

static void check_handler() {
  handler_gives_up = false;
  n_handler_calls = 0;
  std::set_new_handler(count_call);
  CHECK(throws_bad_alloc([] { return mi_heap_alloc_new(nullptr, hidden(too_large)); }));
  CHECK_EQ(n_handler_calls, 3);
  n_handler_calls = 0;
  std::set_new_handler(count_call);
  CHECK(throws_bad_alloc([] { return mi_new_realloc(nullptr, hidden(too_large)); }));
  CHECK_EQ(n_handler_calls, 3);
  n_handler_calls = 0;
  std::set_new_handler(count_call);
  CHECK(mi_new_aligned_nothrow(hidden(too_large), 64) == nullptr);
  CHECK_EQ(n_handler_calls, 3);
  n_handler_calls = 0;
  std::set_new_handler(count_call);
  CHECK(throws_bad_alloc([] { return mi_new(hidden(too_large)); }));
  CHECK_EQ(n_handler_calls, 3);
  n_handler_calls = 0;
  std::set_new_handler(count_call);
  CHECK(mi_new_nothrow(hidden(too_large)) == nullptr);
  CHECK_EQ(n_handler_calls, 3);
  n_handler_calls = 0;
  std::set_new_handler(count_call);
  CHECK(mi_heap_try_new(nullptr, hidden(too_large), true) == nullptr);
  CHECK_EQ(n_handler_calls, 3);
  n_handler_calls = 0;
  std::set_new_handler(count_call);
  CHECK(throws_bad_alloc([] { return mi_heap_try_new(nullptr, hidden(too_large), false); }));
  CHECK_EQ(n_handler_calls, 3);
  handler_gives_up = true;
  n_handler_calls = 0;
  std::set_new_handler(count_call);
  if (TEST_CATCHES) {
    CHECK(mi_new_nothrow(hidden(too_large)) == nullptr && mi_new_aligned_nothrow(hidden(too_large), 64) == nullptr);
    std::set_new_handler(count_call);
    CHECK(mi_heap_try_new(nullptr, hidden(too_large), true) == nullptr);
  }
  CHECK_EQ(std::uncaught_exceptions(), 0);
  n_handler_calls = 0;
  std::set_new_handler(count_call);
  bool caught = false;
  try {
    mi_free(mi_new(hidden(too_large)));
  } catch (const from_handler&) {
    caught = true;
  }
  CHECK(caught);
  n_handler_calls = 0;
  mi_free(mi_new(100));
  CHECK_EQ(n_handler_calls, 0);
  std::set_new_handler(nullptr);
}

// ---- what no handler can help ---------------------------------------------------------------------------------------

static void count_only() {
  if (++n_handler_calls == 1000) std::set_new_handler(nullptr); // the test ends, at least
}

// An alignment that is none, or a pointer to no block, stays what it is: the handler is not called.
static void check_invalid() {
  alignas(16) static char foreign[64];
  mi_register_error([](int, void*) {}, nullptr); // builds that check blocks abort otherwise
  n_handler_calls = 0;
  std::set_new_handler(count_only);
  for (size_t alignment : {(size_t)0, (size_t)24, (size_t)SIZE_MAX}) {
    errno = 0;
    CHECK(mi_new_aligned_nothrow(100, hidden(alignment)) == nullptr && errno == EINVAL);
    CHECK(throws_bad_alloc([alignment] { return mi_new_aligned(100, hidden(alignment)); }));
  }
  char* p = foreign + hidden(16);
  CHECK(throws_bad_alloc([p] { return mi_new_realloc(p, 100); }));
  CHECK(throws_bad_alloc([p] { return mi_new_reallocn(p, 100, 2); }));
  CHECK_EQ(n_handler_calls, 0);
  std::set_new_handler(nullptr);
  mi_register_error(nullptr, nullptr);
}

#if defined(MI_HAS_HEAP_STL_ALLOCATOR)

struct element {
  uint64_t a, b;
  explicit element(uint64_t x) : a(x), b(~x) {}
  bool is_good() const { return b == ~a; }
};

static void check_containers(uint64_t seed) {
  rng_t                                           rng = rng_make(seed);
  std::vector<element, mi_stl_allocator<element>> vector;
  std::list<element, mi_stl_allocator<element>>   list;
  std::map<uint64_t, element, std::less<uint64_t>, mi_stl_allocator<std::pair<const uint64_t, element>>> map;
  std::unordered_map<uint64_t, element, std::hash<uint64_t>, std::equal_to<uint64_t>,
                     mi_stl_allocator<std::pair<const uint64_t, element>>>
                                                                          hashed;
  std::basic_string<char, std::char_traits<char>, mi_stl_allocator<char>> text;
  for (size_t i = 0; i < 20000; i++) {
    uint64_t x = rng_next(&rng);
    vector.emplace_back(x);
    list.emplace_back(x);
    map.emplace(x % 5000, element(x));
    hashed.emplace(x % 7000, element(x));
    if (x % 3 == 0) map.erase(x % 4999);
    if (x % 5 == 0) list.pop_front();
    text.push_back((char)('a' + x % 26));
  }
  CHECK_EQ(vector.size(), 20000u);
  CHECK_EQ(text.size(), 20000u);
  size_t n_bad = 0;
  for (const element& e : vector) n_bad += !e.is_good();
  for (const element& e : list) n_bad += !e.is_good();
  for (const auto& e : map) n_bad += !e.second.is_good();
  for (const auto& e : hashed) n_bad += !e.second.is_good();
  CHECK_EQ(n_bad, 0u);
  CHECK(mi_is_in_heap_region(vector.data()));
  CHECK(mi_is_in_heap_region(&list.front()));
  auto copy = vector;
  auto moved = std::move(vector);
  CHECK(copy.size() == moved.size());
  swap(copy, moved);
}

static void check_allocator() {
  mi_stl_allocator<int>    ints;
  mi_stl_allocator<double> doubles(ints);
  CHECK(ints == mi_stl_allocator<int>());
  CHECK(!(ints != mi_stl_allocator<int>()));
  CHECK(std::allocator_traits<mi_stl_allocator<int>>::is_always_equal::value);
  double* p = doubles.allocate(10);
  CHECK(p != nullptr && mi_usable_size(p) >= 10 * sizeof(double));
  doubles.deallocate(p, 10);
  CHECK(throws_bad_alloc([&ints] { return (void*)ints.allocate(hidden(SIZE_MAX / sizeof(int))); }));
  CHECK(throws_bad_alloc([&ints] { return (void*)ints.allocate(hidden(SIZE_MAX / 2)); }));
}

#endif

int main(int argc, char** argv) {
  uint64_t seed = test_seed(argc, argv);
  check_throwing();
  check_handler();
  check_invalid();
#if defined(MI_HAS_HEAP_STL_ALLOCATOR)
  check_containers(seed);
  check_allocator();
#else
  (void)seed;
  test_skip("mi_stl_allocator", "not part of this header");
#endif
  return check_result();
}
