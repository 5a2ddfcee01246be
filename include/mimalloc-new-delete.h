/* Replaces operator new and delete of the whole program with functions of this library.

   Include it in exactly one C++ source of a program: it defines the replaceable functions of the language.  (A program
   that links the library as its malloc needs no header.)  operator new calls the new-handler and throws std::bad_alloc
   as the standard requires; the nothrow forms return nullptr.

   On Windows the program must contain its C++ runtime (MinGW: -static-libstdc++): a runtime that is a DLL keeps its own
   operators, and gives the program blocks of them. */
#pragma once
#ifndef MIMALLOC_NEW_DELETE_H
#define MIMALLOC_NEW_DELETE_H

#if defined(__cplusplus)

#include <new>
#include "mimalloc.h"

/* The exception specification of the throwing forms in C++98. */
#if (__cplusplus >= 201103L) || defined(_MSC_VER)
  #define mi_attr_throws_bad_alloc
#else
  #define mi_attr_throws_bad_alloc throw(std::bad_alloc)
#endif

void* operator new(std::size_t n) mi_attr_throws_bad_alloc { return mi_new(n); }
void* operator new[](std::size_t n) mi_attr_throws_bad_alloc { return mi_new(n); }
void* operator new(std::size_t n, const std::nothrow_t&) mi_attr_noexcept { return mi_new_nothrow(n); }
void* operator new[](std::size_t n, const std::nothrow_t&) mi_attr_noexcept { return mi_new_nothrow(n); }

void operator delete(void* p) mi_attr_noexcept { mi_free(p); }
void operator delete[](void* p) mi_attr_noexcept { mi_free(p); }
void operator delete(void* p, const std::nothrow_t&) mi_attr_noexcept { mi_free(p); }
void operator delete[](void* p, const std::nothrow_t&) mi_attr_noexcept { mi_free(p); }

#if (__cplusplus >= 201402L) || (defined(_MSC_VER) && _MSC_VER >= 1900)
void operator delete(void* p, std::size_t n) mi_attr_noexcept { mi_free_size(p, n); }
void operator delete[](void* p, std::size_t n) mi_attr_noexcept { mi_free_size(p, n); }
#endif

#if defined(__cpp_aligned_new)
void* operator new(std::size_t n, std::align_val_t al) { return mi_new_aligned(n, static_cast<std::size_t>(al)); }
void* operator new[](std::size_t n, std::align_val_t al) { return mi_new_aligned(n, static_cast<std::size_t>(al)); }
void* operator new(std::size_t n, std::align_val_t al, const std::nothrow_t&) mi_attr_noexcept {
  return mi_new_aligned_nothrow(n, static_cast<std::size_t>(al));
}
void* operator new[](std::size_t n, std::align_val_t al, const std::nothrow_t&) mi_attr_noexcept {
  return mi_new_aligned_nothrow(n, static_cast<std::size_t>(al));
}

void operator delete(void* p, std::align_val_t al) mi_attr_noexcept {
  mi_free_aligned(p, static_cast<std::size_t>(al));
}
void operator delete[](void* p, std::align_val_t al) mi_attr_noexcept {
  mi_free_aligned(p, static_cast<std::size_t>(al));
}
void operator delete(void* p, std::size_t n, std::align_val_t al) mi_attr_noexcept {
  mi_free_size_aligned(p, n, static_cast<std::size_t>(al));
}
void operator delete[](void* p, std::size_t n, std::align_val_t al) mi_attr_noexcept {
  mi_free_size_aligned(p, n, static_cast<std::size_t>(al));
}
void operator delete(void* p, std::align_val_t al, const std::nothrow_t&) mi_attr_noexcept {
  mi_free_aligned(p, static_cast<std::size_t>(al));
}
void operator delete[](void* p, std::align_val_t al, const std::nothrow_t&) mi_attr_noexcept {
  mi_free_aligned(p, static_cast<std::size_t>(al));
}
#endif

#endif
#endif
