// operator new and delete, all forms of them.  Layer: override.
//
// A program may replace any of them.  Then the others do what the standard says of each, and call a more basic one,
// whoever defines it:
//
//   new[] (n)               -> new (n)                   delete[] (p)                      -> delete (p)
//   new (n, nothrow)        -> new (n), catching         delete (p, size), (p, nothrow)    -> delete (p)
//   new[] (n, nothrow)      -> new[] (n), catching       delete[] (p, size), (p, nothrow)  -> delete[] (p)
//
// and the same for those with an alignment among themselves.  The most basic ones are mi_new and mi_free.
//
// O1  Each form is weak, and refers to the more basic one as a program would, by its symbol; so it is the linker or the
//     loader that finds out who is called.  Where nothing is replaced that is a jump through a table for each arrow above.
// O2  A form that knows more than the one it stands for (a size to check, that NULL will do for an answer) uses what it
//     knows if the whole chain behind it is ours.  A chain that is not recognised as ours is called like any other: in a
//     program at a fixed address that takes the address of a form, the loader gives the form that of a stub.
#include "../api/catch.h"
#include "../api/names.h"
#include "../prim/system.h"

#if defined(MI_MALLOC_OVERRIDE) && !MI_SYSTEM_DARWIN

  // By their mangled names, so that C can define them: m or j is the type of size_t.
  #if SIZE_MAX == UINT64_MAX
    #define OPERATOR_NEW(rest)          _Znwm##rest
    #define OPERATOR_NEW_ARRAY(rest)    _Znam##rest
    #define OPERATOR_DELETE(rest)       _ZdlPvm##rest
    #define OPERATOR_DELETE_ARRAY(rest) _ZdaPvm##rest
  #else
    #define OPERATOR_NEW(rest)          _Znwj##rest
    #define OPERATOR_NEW_ARRAY(rest)    _Znaj##rest
    #define OPERATOR_DELETE(rest)       _ZdlPvj##rest
    #define OPERATOR_DELETE_ARRAY(rest) _ZdaPvj##rest
  #endif
  #define OPERATOR_TEXT_OF(name) #name
  #define OPERATOR_TEXT(name)    OPERATOR_TEXT_OF(name)

  #define OPERATOR       __attribute__((visibility("default"), used)) mi_weak
  #define OPERATOR_IS(f) __attribute__((alias(OPERATOR_TEXT(f))))

  // A call through the table at once, not by way of a stub.
  #if defined(__has_attribute)
    #if __has_attribute(noplt)
      #define OPERATOR_SEEN __attribute__((noplt)) extern
    #endif
  #endif
  #if !defined(OPERATOR_SEEN)
    #define OPERATOR_SEEN extern
  #endif

MI_NAMES_BEGIN

// clang-format off

// ---- those that everybody sees: the program's, or ours ---------------------------------------------------------------

OPERATOR_SEEN void* seen_new(size_t size)                              __asm__(OPERATOR_TEXT(OPERATOR_NEW()));
OPERATOR_SEEN void* seen_new_array(size_t size)                        __asm__(OPERATOR_TEXT(OPERATOR_NEW_ARRAY()));
OPERATOR_SEEN void* seen_new_aligned(size_t size, size_t align)        __asm__(OPERATOR_TEXT(OPERATOR_NEW(St11align_val_t)));
OPERATOR_SEEN void* seen_new_array_aligned(size_t size, size_t align)  __asm__(OPERATOR_TEXT(OPERATOR_NEW_ARRAY(St11align_val_t)));
OPERATOR_SEEN void  seen_delete(void* p)                               __asm__("_ZdlPv");
OPERATOR_SEEN void  seen_delete_array(void* p)                         __asm__("_ZdaPv");
OPERATOR_SEEN void  seen_delete_aligned(void* p, size_t align)         __asm__("_ZdlPvSt11align_val_t");
OPERATOR_SEEN void  seen_delete_array_aligned(void* p, size_t align)   __asm__("_ZdaPvSt11align_val_t");

// ---- ours -----------------------------------------------------------------------------------------------------------
// In the single-source build the most basic ones are aliases.  A build from separate files can alias within one file only,
// and tools replace functions by their address: mi_new must have one of its own then.

  #if defined(MI_SINGLE_SOURCE) && !MI_TRACK
    #define OWN_NEW         mi_new
    #define OWN_NEW_ALIGNED mi_new_aligned
    #define OWN_DELETE      mi_free
  #else
    #define OWN_NEW         _mi_operators_new
    #define OWN_NEW_ALIGNED _mi_operators_new_aligned
    #define OWN_DELETE      _mi_operators_delete
void* _mi_operators_new(size_t size)                                   { return mi_new(size); }
void* _mi_operators_new_aligned(size_t size, size_t align)             { return mi_new_aligned(size, align); }
void  _mi_operators_delete(void* p)                                    { mi_free(p); }
  #endif
void* _mi_operators_new_array(size_t size)                             { return seen_new(size); }
void* _mi_operators_new_array_aligned(size_t size, size_t align)       { return seen_new_aligned(size, align); }
void  _mi_operators_delete_array(void* p)                              { seen_delete(p); }
void  _mi_operators_delete_aligned(void* p, size_t align)              { mi_free_aligned(p, align); }
void  _mi_operators_delete_array_aligned(void* p, size_t align)        { seen_delete_aligned(p, align); }

OPERATOR void* OPERATOR_NEW()(size_t size)                                   OPERATOR_IS(OWN_NEW);
OPERATOR void* OPERATOR_NEW_ARRAY()(size_t size)                             OPERATOR_IS(_mi_operators_new_array);
OPERATOR void* OPERATOR_NEW(St11align_val_t)(size_t size, size_t align)      OPERATOR_IS(OWN_NEW_ALIGNED);
OPERATOR void* OPERATOR_NEW_ARRAY(St11align_val_t)(size_t size, size_t align) OPERATOR_IS(_mi_operators_new_array_aligned);
OPERATOR void  _ZdlPv(void* p)                                               OPERATOR_IS(OWN_DELETE);
OPERATOR void  _ZdaPv(void* p)                                               OPERATOR_IS(_mi_operators_delete_array);
OPERATOR void  _ZdlPvSt11align_val_t(void* p, size_t align)                  OPERATOR_IS(_mi_operators_delete_aligned);
OPERATOR void  _ZdaPvSt11align_val_t(void* p, size_t align)                  OPERATOR_IS(_mi_operators_delete_array_aligned);

// ---- is a chain ours? (O2) --------------------------------------------------------------------------------------------
// Compilers think that they know that two functions are not one, or are; the linker decides it here.

#define OPERATOR_IS_OWN(seen, own) operators_is_same((uintptr_t)&(seen), (uintptr_t)&(own))

static inline bool operators_is_same(uintptr_t seen, uintptr_t own) {
  __asm__("" : "+r"(seen));
  return mi_likely(seen == own);
}

static inline bool own_new(void)                  { return OPERATOR_IS_OWN(seen_new, OWN_NEW); }
static inline bool own_new_array(void)            { return OPERATOR_IS_OWN(seen_new_array, _mi_operators_new_array) && own_new(); }
static inline bool own_new_aligned(void)          { return OPERATOR_IS_OWN(seen_new_aligned, OWN_NEW_ALIGNED); }
static inline bool own_new_array_aligned(void)    { return OPERATOR_IS_OWN(seen_new_array_aligned, _mi_operators_new_array_aligned) && own_new_aligned(); }
static inline bool own_delete(void)               { return OPERATOR_IS_OWN(seen_delete, OWN_DELETE); }
static inline bool own_delete_array(void)         { return OPERATOR_IS_OWN(seen_delete_array, _mi_operators_delete_array) && own_delete(); }
static inline bool own_delete_aligned(void)       { return OPERATOR_IS_OWN(seen_delete_aligned, _mi_operators_delete_aligned); }
static inline bool own_delete_array_aligned(void) { return OPERATOR_IS_OWN(seen_delete_array_aligned, _mi_operators_delete_array_aligned) && own_delete_aligned(); }

// clang-format on

// ---- those that do not throw ------------------------------------------------------------------------------------------

static void* operators_call_new(size_t size, size_t unused) {
  return seen_new(size);
}

static void* operators_call_new_array(size_t size, size_t unused) {
  return seen_new_array(size);
}

OPERATOR void* OPERATOR_NEW(RKSt9nothrow_t)(size_t size, const void* tag) {
  return own_new() ? mi_new_nothrow(size) : _mi_catch(&operators_call_new, size, 0);
}

OPERATOR void* OPERATOR_NEW_ARRAY(RKSt9nothrow_t)(size_t size, const void* tag) {
  return own_new_array() ? mi_new_nothrow(size) : _mi_catch(&operators_call_new_array, size, 0);
}

OPERATOR void* OPERATOR_NEW(St11align_val_tRKSt9nothrow_t)(size_t size, size_t align, const void* tag) {
  return own_new_aligned() ? mi_new_aligned_nothrow(size, align) : _mi_catch(&seen_new_aligned, size, align);
}

OPERATOR void* OPERATOR_NEW_ARRAY(St11align_val_tRKSt9nothrow_t)(size_t size, size_t align, const void* tag) {
  return own_new_array_aligned() ? mi_new_aligned_nothrow(size, align)
                                 : _mi_catch(&seen_new_array_aligned, size, align);
}

// Called only when a constructor throws.
// clang-format off
OPERATOR void _ZdlPvRKSt9nothrow_t(void* p, const void* tag)                               { seen_delete(p); }
OPERATOR void _ZdaPvRKSt9nothrow_t(void* p, const void* tag)                               { seen_delete_array(p); }
OPERATOR void _ZdlPvSt11align_val_tRKSt9nothrow_t(void* p, size_t align, const void* tag)  { seen_delete_aligned(p, align); }
OPERATOR void _ZdaPvSt11align_val_tRKSt9nothrow_t(void* p, size_t align, const void* tag)  { seen_delete_array_aligned(p, align); }
// clang-format on

// ---- those that are told a size: what C++14 and later call for most types ----------------------------------------------

OPERATOR void OPERATOR_DELETE()(void* p, size_t size) {
  if (MI_CHECKED && own_delete()) mi_free_size(p, size);
  else seen_delete(p);
}

OPERATOR void OPERATOR_DELETE_ARRAY()(void* p, size_t size) {
  if (MI_CHECKED && own_delete_array()) mi_free_size(p, size);
  else seen_delete_array(p);
}

OPERATOR void OPERATOR_DELETE(St11align_val_t)(void* p, size_t size, size_t align) {
  if (MI_CHECKED && own_delete_aligned()) mi_free_size_aligned(p, size, align);
  else seen_delete_aligned(p, align);
}

OPERATOR void OPERATOR_DELETE_ARRAY(St11align_val_t)(void* p, size_t size, size_t align) {
  if (MI_CHECKED && own_delete_array_aligned()) mi_free_size_aligned(p, size, align);
  else seen_delete_array_aligned(p, align);
}

MI_NAMES_END

#endif
