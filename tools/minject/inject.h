// Adds an import to an executable, as the first one: the loader then loads that library, and lets it initialise itself,
// before all others.
//
// The table of imports cannot grow where it is.  So a section is added behind all others, with a longer table; its new entry
// imports one function, which nobody calls.  Addresses stay as they are; what follows the sections in the file moves.
//
//      .minject:  | mark | our entry | the other entries, in order | 0 | our functions | our addresses | names |
#pragma once

#include "pe.h"

typedef struct inject_s {
  const char* library;  // its file name
  const char* function; // one that it exports
  bool        force;    // signed executables, too: the copy is not signed
} inject_t;

typedef struct injected_s {
  uint8_t* bytes; // to be freed
  size_t   size;
  bool     was_signed, was_bound;
  bool     was_there;    // the library was an import, but not the first one
  size_t   overlay_size; // bytes behind the sections, which are kept
} injected_t;

// Of which file was this one made?  The mark in the section says so.
typedef struct inject_mark_s {
  uint64_t size, hash;
} inject_mark_t;

// False: see pe->why.
bool          inject(pe_t* pe, const inject_t* what, injected_t* to);
bool          inject_find_mark(const pe_t* pe, inject_mark_t* mark);
inject_mark_t inject_mark_of(const uint8_t* bytes, size_t size);
