// Memory tags of processors (AArch64 MTE): each 16 bytes of memory have a tag of four bits, and so has a pointer, in its top
// byte.  An access whose pointer has another tag than the memory ends the program.  Layer: prim.
//
// TG1  A block in use has a tag from 1 to 15, which the program's pointer has too.  All other memory of ours has tag 0: what
//      is free, what describes it, large blocks.  So the library's own pointers, which have none, lead everywhere but into
//      blocks in use.
// TG2  Neighbours in a page have different tags, as far as the page's slices hold them both.
//
// MI_TAGS is a constant of the build (MI_MEMORY_TAGGING); whether there are tags at all is known at run time.
#pragma once

#include "../base/mode.h"
#include "../base/compiler.h"

extern bool _mi_prim_has_tags; // written once, before there is a block

// Switches tags on, for the calling thread and those that it starts, if the processor and the system have them.
void  _mi_prim_tag_init(void);
// For a thread that began before that.
void  _mi_prim_tag_thread(void);
// What makes memory hold tags: for mmap and mprotect.
int   _mi_prim_tag_protection(void);
// Gives the block a tag other than 0 and those of its neighbours; returns the pointer for the program.
void* _mi_prim_tag_block(void* p, size_t size);
// Gives the memory tag 0.
void  _mi_prim_tag_clear(void* start, size_t size);
// The tag of the memory at p, which has none itself, as the pointer to it that the program may have.
void* _mi_prim_tag_pointer(const void* p);

#define MI_TAG_GRANULE ((size_t)16)
#define MI_TAG_BYTE    ((uintptr_t)(MI_TAGS ? 0xFF : 0) << (8 * sizeof(uintptr_t) - 8)) // the top byte

// The pointer without its tag.
static mi_always_inline void* _mi_prim_tag_strip(const void* p) {
  return (void*)((uintptr_t)p & ~MI_TAG_BYTE);
}

// A word that may lie in a block in use: it is read whatever its tag is.
static inline uintptr_t _mi_prim_tag_peek(const uintptr_t* word) {
#if MI_TAGS
  uintptr_t value;
  if (!_mi_prim_has_tags) return *word;
  __asm__ volatile(".arch armv8.5-a+memtag\n\tmsr tco, #1\n\tldr %0, [%1]\n\tmsr tco, #0"
                   : "=r"(value)
                   : "r"(word)
                   : "memory");
  return value;
#else
  return *word;
#endif
}
