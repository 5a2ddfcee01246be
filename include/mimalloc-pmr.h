/* A std::pmr::memory_resource over a heap.

     mi_heap_memory_resource pool;                      a heap of its own
     std::pmr::vector<std::pmr::string> names(&pool);
     ...
     pool.release();                                    frees everything at once, as its destructor does

   For C++17 and later, with exceptions, if the standard library has <memory_resource>; otherwise this header defines
   nothing.  It is an extension of this library. */
#pragma once
#ifndef MIMALLOC_PMR_H
#define MIMALLOC_PMR_H

#if defined(__cplusplus) && ((__cplusplus >= 201703L) || (defined(_MSVC_LANG) && _MSVC_LANG >= 201703L))
#if __has_include(<memory_resource>) && (defined(__cpp_exceptions) || defined(_CPPUNWIND))

#include <cstddef>
#include <memory_resource>
#include <new>
#include "mimalloc.h"

#define MI_HAS_HEAP_MEMORY_RESOURCE 1

/* Any thread may allocate and deallocate at any time.  During release and the destructor no other thread may use the
   resource.  Allocation calls the new-handler and throws std::bad_alloc as operator new does.  Two resources are equal if
   they have the same heap; compiled without RTTI a resource is equal to itself alone. */
class mi_heap_memory_resource : public std::pmr::memory_resource {
 public:
  /* Owns a new heap, which the destructor destroys.  Throws std::bad_alloc if there is no memory for the heap. */
  mi_heap_memory_resource() : heap_(heap_new()), is_owner_(true) {}

  /* Uses a heap of the program, which must outlive the resource; nullptr is the main heap. */
  explicit mi_heap_memory_resource(mi_heap_t* heap) noexcept
    : heap_(heap != nullptr ? heap : mi_heap_main()), is_owner_(false) {}

  mi_heap_memory_resource(const mi_heap_memory_resource&) = delete;
  mi_heap_memory_resource& operator=(const mi_heap_memory_resource&) = delete;

  ~mi_heap_memory_resource() override {
    if (is_owner_) mi_heap_destroy(heap_);
  }

  mi_heap_t* heap() const noexcept { return heap_; }

  /* Frees all blocks at once and continues with a new heap.  Has no effect on a resource that does not own its heap.
     Throws std::bad_alloc, and frees nothing, if there is no memory for the new heap. */
  void release() {
    if (!is_owner_) return;
    mi_heap_t* old = heap_;
    heap_ = heap_new();
    mi_heap_destroy(old);
  }

 protected:
  void* do_allocate(std::size_t size, std::size_t alignment) override {
    return _mi_heap_new_aligned(heap_, size, alignment);
  }

  void do_deallocate(void* p, std::size_t size, std::size_t alignment) override {
    mi_free_size_aligned(p, size, alignment);
  }

  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    if (this == &other) return true;
#if defined(__cpp_rtti)
    const mi_heap_memory_resource* resource = dynamic_cast<const mi_heap_memory_resource*>(&other);
    return resource != nullptr && resource->heap_ == heap_;
#else
    return false;
#endif
  }

 private:
  static mi_heap_t* heap_new() {
    mi_heap_t* heap = mi_heap_new();
    if (heap == nullptr) throw std::bad_alloc();
    return heap;
  }

  mi_heap_t* heap_;
  bool       is_owner_;
};

#endif
#endif

#endif
