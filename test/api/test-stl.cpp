// Proves: the allocators of mimalloc.h serve the containers of the standard library: they rebind, compare and propagate as
// they say, elements have the alignment of their type, a heap of their own lasts as long as the last copy, and with the
// destroying one everything goes at its end.
#include "../check.h"
#include "entries.h"
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <type_traits>
#include <unordered_map>
#include <vector>

#if !defined(MI_HAS_HEAP_STL_ALLOCATOR)
  #error "C++17 has them all"
#endif

// ---- types ----------------------------------------------------------------------------------------------------------

template <template <class> class A, bool always_equal>
struct types_are_right {
  typedef A<int>                       alloc;
  typedef std::allocator_traits<alloc> traits;
  static_assert(std::is_same<typename alloc::value_type, int>::value, "value_type");
  static_assert(std::is_same<typename alloc::size_type, std::size_t>::value, "size_type");
  static_assert(std::is_same<typename alloc::difference_type, std::ptrdiff_t>::value, "difference_type");
  static_assert(std::is_same<typename alloc::reference, int&>::value, "reference");
  static_assert(std::is_same<typename alloc::const_reference, const int&>::value, "const_reference");
  static_assert(std::is_same<typename alloc::pointer, int*>::value, "pointer");
  static_assert(std::is_same<typename alloc::const_pointer, const int*>::value, "const_pointer");
  static_assert(std::is_same<typename alloc::template rebind<char>::other, A<char>>::value, "rebind");
  static_assert(std::is_same<typename traits::template rebind_alloc<char>, A<char>>::value, "rebind_alloc");
  static_assert(traits::propagate_on_container_copy_assignment::value, "copy assignment");
  static_assert(traits::propagate_on_container_move_assignment::value, "move assignment");
  static_assert(traits::propagate_on_container_swap::value, "swap");
  static_assert(traits::is_always_equal::value == always_equal, "is_always_equal");
  static_assert(std::is_convertible<A<char>, alloc>::value, "conversion");
  static_assert(std::is_nothrow_copy_constructible<alloc>::value, "copy");
};

template struct types_are_right<mi_stl_allocator, true>;
template struct types_are_right<mi_heap_stl_allocator, false>;
template struct types_are_right<mi_heap_destroy_stl_allocator, false>;
static_assert(std::is_trivially_default_constructible<mi_stl_allocator<int>>::value, "default constructor");

// ---- containers -----------------------------------------------------------------------------------------------------

struct element {
  uint64_t a, b;
  explicit element(uint64_t x) : a(x), b(~x) {}
  bool is_good() const { return b == ~a; }
};

template <template <class> class A>
struct containers {
  typedef std::pair<const uint64_t, element>                                                   pair;
  typedef std::basic_string<char, std::char_traits<char>, A<char>>                             string;
  std::vector<element, A<element>>                                                             vector;
  std::deque<element, A<element>>                                                              deque;
  std::list<element, A<element>>                                                               list;
  std::set<uint64_t, std::less<uint64_t>, A<uint64_t>>                                         set;
  std::map<uint64_t, element, std::less<uint64_t>, A<pair>>                                    map;
  std::unordered_map<uint64_t, element, std::hash<uint64_t>, std::equal_to<uint64_t>, A<pair>> hashed;
  std::vector<string, A<string>>                                                               strings;
  string                                                                                       text;

  explicit containers(const A<element>& a)
      : vector(a), deque(a), list(a), set(a), map(a), hashed(16, std::hash<uint64_t>(), std::equal_to<uint64_t>(), a),
        strings(a), text(a) {}

  void add(uint64_t x) {
    vector.emplace_back(x);
    deque.emplace_front(x);
    list.emplace_back(x);
    set.insert(x % 3000);
    map.emplace(x % 5000, element(x));
    hashed.emplace(x % 7000, element(x));
    strings.emplace_back(1 + x % 100, 'x', text.get_allocator());
    text.push_back((char)('a' + x % 26));
    if (x % 3 == 0) map.erase(x % 4999);
    if (x % 5 == 0) list.pop_front();
    if (x % 7 == 0) hashed.erase(x % 6000);
  }

  size_t count_bad() const {
    size_t n = 0;
    for (const element& e : vector) n += !e.is_good();
    for (const element& e : deque) n += !e.is_good();
    for (const element& e : list) n += !e.is_good();
    for (const auto& e : map) n += !e.second.is_good();
    for (const auto& e : hashed) n += !e.second.is_good();
    for (const auto& s : strings) n += s.find_first_not_of('x') != string::npos;
    return n;
  }

  bool is_in(mi_heap_t* heap) const {
    return mi_heap_of(vector.data()) == heap && mi_heap_of(&deque.front()) == heap &&
           mi_heap_of(&list.front()) == heap && mi_heap_of(&*set.begin()) == heap &&
           mi_heap_of(&*map.begin()) == heap && mi_heap_of(&*hashed.begin()) == heap &&
           mi_heap_of(strings.data()) == heap && mi_heap_of(text.data()) == heap;
  }
};

template <template <class> class A>
static void check_containers(const A<element>& a, mi_heap_t* heap, uint64_t seed) {
  rng_t         rng = rng_make(seed);
  containers<A> c(a);
  for (size_t i = 0; i < 20000; i++) c.add(rng_next(&rng));
  CHECK(c.vector.size() == 20000 && c.text.size() == 20000 && c.strings.size() == 20000);
  CHECK_EQ(c.count_bad(), 0u);
  CHECK(c.is_in(heap));
  containers<A> copy(c);
  CHECK_EQ(copy.count_bad(), 0u);
  CHECK(copy.is_in(heap) && copy.vector.data() != c.vector.data());
  const element* data = c.vector.data();
  containers<A>  moved(std::move(c));
  CHECK(moved.vector.data() == data && moved.count_bad() == 0);
  std::swap(moved, copy);
  CHECK(copy.vector.data() == data && copy.count_bad() == 0 && moved.count_bad() == 0);
}

// ---- alignment ------------------------------------------------------------------------------------------------------

template <size_t alignment>
struct alignas(alignment) aligned_element {
  uint64_t value;
};

static int n_handler_calls;

static void count_calls() {
  if (++n_handler_calls == 3) std::set_new_handler(nullptr);
}

template <class A>
static bool throws_bad_alloc(A& a, size_t count) {
  try {
    a.deallocate(a.allocate(hidden(count)), count);
  } catch (const std::bad_alloc&) {
    return true;
  }
  return false;
}

// Counts whose bytes overflow, also to what could be had, and more bytes than there can be.
template <class A>
static void check_failures(A& a) {
  const size_t size = sizeof(typename A::value_type);
  CHECK(throws_bad_alloc(a, SIZE_MAX));
  CHECK(throws_bad_alloc(a, SIZE_MAX / size + 1) && throws_bad_alloc(a, SIZE_MAX / size + 2));
  CHECK(throws_bad_alloc(a, a.max_size() + 1));
  if (sizeof(void*) < 8) return; // half of the address space can be had there
  n_handler_calls = 0;
  std::set_new_handler(&count_calls);
  CHECK(throws_bad_alloc(a, a.max_size()));
  CHECK_EQ(n_handler_calls, 3);
}

template <template <class> class A, size_t alignment>
static void check_alignment(mi_heap_t* heap, const A<element>& a) {
  typedef aligned_element<alignment> aligned;
  A<aligned>                         allocator(a);
  static_assert(sizeof(aligned) == alignment || alignment < 8, "elements lie one behind another");
  for (size_t n = 1; n <= 30; n++) {
    aligned* p[4];
    for (aligned*& q : p) {
      q = allocator.allocate(n);
      CHECK_FOR(is_aligned(q, alignment) && mi_heap_of(q) == heap, "%zu of %zu bytes", n, alignment);
      memset(static_cast<void*>(q), 0xAB, n * sizeof(aligned));
    }
    for (aligned* q : p) allocator.deallocate(q, n);
  }
  check_failures(allocator);
  std::vector<aligned, A<aligned>> vector(allocator);
  std::list<aligned, A<aligned>>   list(allocator);
  for (uint64_t i = 0; i < 100; i++) {
    vector.push_back(aligned{i});
    list.push_back(aligned{i});
    CHECK(is_aligned(vector.data(), alignment) && is_aligned(&list.back(), alignment));
  }
  CHECK(vector[99].value == 99 && list.front().value == 0);
}

template <template <class> class A>
static void check_alignments(mi_heap_t* heap, const A<element>& a) {
  check_alignment<A, 8>(heap, a);
  check_alignment<A, 16>(heap, a);
  check_alignment<A, 32>(heap, a);
  check_alignment<A, 256>(heap, a);
  check_alignment<A, 4096>(heap, a);
  check_alignment<A, 64 * KiB>(heap, a);
  check_alignment<A, 128 * KiB>(heap, a);
}

// One block in two is guarded.
template <template <class> class A>
static void check_guarded(const A<element>& a, mi_heap_t* heap) {
  mi_heap_guarded_set_sample_rate(heap, 2, 1);
  check_alignments<A>(heap, a);
  mi_heap_guarded_set_sample_rate(heap, 0, 0);
}

template <template <class> class A>
static void check_all_alignments(const A<element>& a, mi_heap_t* heap) {
  mi_option_disable(mi_option_show_errors);
  check_alignments<A>(heap, a);
  check_guarded<A>(a, heap);
}

// ---- allocators with a heap -----------------------------------------------------------------------------------------

template <template <class> class A>
static void check_equality() {
  A<int>  a, b;
  A<char> of_a(a);
  A<int>  copy(a);
  CHECK(a == copy && a == of_a && !(a != copy) && a.is_equal(of_a));
  CHECK(a != b && !(a == b) && !a.is_equal(b));
  b = a;
  CHECK(a == b);
  CHECK(a.select_on_container_copy_construction() == a);
  CHECK(a.max_size() == (size_t)PTRDIFF_MAX / sizeof(int));
  int  value = 0;
  int* p = a.allocate(10, &value);
  CHECK(a.address(*p) == p && mi_heap_of(p) != NULL && mi_heap_of(p) != mi_heap_main());
  char* q = of_a.allocate(10);
  CHECK(mi_heap_of(p) == mi_heap_of(q));
  a.construct(p, 77);
  CHECK_EQ(*p, 77);
  a.destroy(p);
  a.deallocate(p, 10);
  of_a.deallocate(q, 10);
  a.collect(false);
  a.collect(true);
  bool is_thrown = false;
  try {
    a.deallocate(a.allocate(hidden(SIZE_MAX / sizeof(int))), 1);
  } catch (const std::bad_alloc&) {
    is_thrown = true;
  }
  CHECK(is_thrown);
  A<int> of_null(nullptr), of_main(mi_heap_main());
  CHECK(of_null == of_main && of_null != a && of_null.is_equal(of_main));
  std::list<int, A<int>> from(1, 5, of_null), to(of_main); // one heap: the element can change hands
  to.splice(to.begin(), from);
  CHECK(from.empty() && to.front() == 5);
}

// The allocator goes along where a container is assigned or swapped.
template <template <class> class A>
static void check_propagation() {
  typedef std::vector<int, A<int>> vector;
  vector                           a(1000, 1), b(1000, 2), c(1000, 3);
  CHECK(a.get_allocator() != b.get_allocator());
  A<int>     of_a = a.get_allocator(), of_b = b.get_allocator();
  const int* data = b.data();
  swap(a, b);
  CHECK(a.get_allocator() == of_b && b.get_allocator() == of_a && a.data() == data && a[999] == 2 && b[999] == 1);
  c = a;
  CHECK(c.get_allocator() == of_b && c[999] == 2 && mi_heap_of(c.data()) == mi_heap_of(a.data()));
  c = std::move(b);
  CHECK(c.get_allocator() == of_a && c[999] == 1);
  vector d(a, of_a); // to another heap
  CHECK(d.get_allocator() == of_a && mi_heap_of(d.data()) == mi_heap_of(c.data()) && d[999] == 2);
}

static bool count_heap(mi_heap_t*, void* n) {
  ++*static_cast<size_t*>(n);
  return true;
}

static size_t heap_count() {
  size_t n = 0;
  CHECK(mi_subproc_visit_heaps(mi_subproc_main(), &count_heap, &n));
  return n;
}

// A heap that was given lives on; one of its own does not, and takes its memory along.
template <template <class> class A>
static void check_life(uint64_t seed) {
  mi_heap_t* heap = mi_heap_new();
  check_containers<A>(A<element>(heap), heap, seed);
  CHECK(A<int>(heap) == A<char>(heap) && A<int>(heap) != A<int>());
  void* p = mi_heap_malloc(heap, 100);
  CHECK(mi_heap_of(p) == heap);
  mi_heap_destroy(heap);
  size_t peak = 0;
  for (size_t round = 0; round < 30; round++) {
    std::vector<uint64_t, A<uint64_t>> vector(100000, round);
    std::list<size_t, A<size_t>>       list;
    for (size_t i = 0; i < 50000; i++) list.push_back(i);
    CHECK(vector[99999] == round && list.back() == 49999);
    if (round == 3) peak = rss_now();
  }
  CHECK(rss_within("growth over containers with heaps of their own", minus(rss_now(), peak), 16 * MiB));
}

// The last copy ends the heap, not the first.
template <template <class> class A>
static void check_copies() {
  A<int>* first = new A<int>();
  A<char> second(*first);
  int*    p = first->allocate(1000);
  p[999] = 77;
  mi_heap_t* heap = mi_heap_of(p);
  delete first;
  CHECK(mi_heap_of(p) == heap && p[999] == 77);
  char* q = second.allocate(100);
  CHECK(mi_heap_of(q) == heap);
  second.deallocate(q, 100);
  mi_free(p);
}

// Nothing is given back before the end by an allocator that destroys.
static void check_no_deallocation() {
  mi_heap_destroy_stl_allocator<char> a;
  char*                               p = a.allocate(100);
  memset(p, 0xAB, 100);
  a.deallocate(p, 100);
  for (size_t i = 0; i < 100; i++) CHECK(a.allocate(100) != p);
  CHECK((uint8_t)p[99] == 0xAB);
}

template <template <class> class A>
static void check_threads() {
  A<int>                   shared;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([&shared, t] {
      std::list<int, A<int>> list(shared);
      for (int i = 0; i < 20000; i++) {
        list.push_back(i * t);
        if (i % 3 == 0) list.pop_front();
      }
      CHECK_EQ(list.back(), 19999 * t);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

template <template <class> class A>
static void check_all_of_heap(uint64_t seed) {
  A<element> a;
  element*   p = a.allocate(1);
  mi_heap_t* heap = mi_heap_of(p);
  check_containers<A>(a, heap, seed);
  a.deallocate(p, 1);
  check_all_alignments<A>(a, heap);
  check_equality<A>();
  check_propagation<A>();
  check_life<A>(seed);
  check_copies<A>();
  check_threads<A>();
}

int main(int argc, char** argv) {
  uint64_t seed = test_seed(argc, argv);
  size_t   n_heaps = heap_count();
  check_containers<mi_stl_allocator>(mi_stl_allocator<element>(), mi_heap_main(), seed);
  check_all_alignments<mi_stl_allocator>(mi_stl_allocator<element>(), mi_heap_main());
  check_threads<mi_stl_allocator>();
  check_all_of_heap<mi_heap_stl_allocator>(seed);
  check_all_of_heap<mi_heap_destroy_stl_allocator>(seed);
  check_no_deallocation();
  CHECK_EQ(heap_count(), n_heaps);
  return check_result();
}
