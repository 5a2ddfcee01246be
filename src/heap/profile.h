// The heap profile's tables: the stacks of allocations, and the sampled blocks that are in use.  Layer: heap.
//
// PF1  A sampled block has a page of its own (LARGE, SAMPLED).  Whoever gives that page back takes the block out of the table,
//      so that no other block's free is slower.
// PF2  The profile lock guards the tables.  It is the last lock to be taken, and nothing else is called while it is held.  Totals of stacks
//      are read without it.
// PF3  Each sample stands for `weight` blocks: one over the probability with which its block was sampled.  Sums of weights,
//      and of weights times sizes, are expected to be what was allocated and what is in use, whatever the rate was.
// PF4  The tables have a fixed size.  When there is no room for another block in use, the mean distance between samples is
//      doubled, and each block in the table stays with the probability that it would have had with this distance from the start; the
//      weights of those that stay grow accordingly.  Stacks for which there is no room are counted together, as stack 0.
// PF5  The addresses of stacks are those of calls: of their last byte, which is one before the return address.
#pragma once

#include "../page/page.h"

#define MI_PROFILE_FRAMES    64            // of a stack: the innermost
#define MI_PROFILE_STACKS    16384         // with stack 0
#define MI_PROFILE_ADDRESSES 65536         // distinct ones
#define MI_PROFILE_INDICES   (1024 * 1024) // of addresses, in all stacks together
#define MI_PROFILE_BLOCKS    65536         // in use

// Weights have so many binary places.  So has the number of blocks in use; that of all blocks has them apart, or it would wrap after
// 1.4 x 10^14 blocks.
#define MI_PROFILE_PLACES 16

typedef struct mi_profile_stack_s {
  uint32_t           next;  // in its bucket
  uint32_t           first; // of its indices
  uint32_t           n_frames;
  uint32_t           n_allocated_rest;       // binary places of what follows, under the lock
  mi_atomic(int64_t) n_allocated, allocated; // blocks, and bytes
  mi_atomic(int64_t) n_live, live;           // the sum of weights, and bytes
} mi_profile_stack_t;

// A sampled block that is in use.
typedef struct mi_profile_block_s {
  const void* block; // NULL: it is not in the table, as there was no room
  uint64_t    weight;
  size_t      size, charged;
  uint32_t    stack, next;
} mi_profile_block_t;

typedef struct mi_profile_counts_s {
  size_t mean;      // bytes between samples; 0: none are taken
  size_t n_samples; // that were taken
  size_t n_blocks;  // of them, in use
  size_t n_blocks_max;
  size_t n_stacks;  // with stack 0
  size_t n_dropped; // samples for which there was no room
  size_t n_other;   // samples that count for stack 0
} mi_profile_counts_t;

// What takes locks of the system's loader, once: a request by a signal is answered within a malloc, of a program that may hold others
// for which a thread waits that loads a library.
void _mi_profile_prepare(void);

// Makes the tables.  ENOMEM, or ENOTSUP where blocks are watched by a tool.
int _mi_profile_init(void);

// A block that was sampled with the given mean when `charged` bytes were counted for it, of `size` bytes for the program.
// Returns the mean to go on with.  Called without locks; takes the stack of the calling thread.
size_t _mi_profile_add(void* p, size_t size, size_t charged, size_t mean);

// The block of a page that is about to be given back.
mi_profile_block_t _mi_profile_remove(mi_page_t* page);

// It stays in use: what was to become of it was refused.
void _mi_profile_put_back(mi_page_t* page, const mi_profile_block_t* block);

void     _mi_profile_counts(mi_profile_counts_t* counts);
void     _mi_profile_set_mean(size_t mean);
size_t   _mi_profile_mean(void);
uint32_t _mi_profile_n_stacks(void);
uint32_t _mi_profile_n_addresses(void);

// The stack i, NULL if it has counted nothing; and its frames, each as the number of an address.
const mi_profile_stack_t* _mi_profile_stack(uint32_t i);
const uint32_t*           _mi_profile_frames(const mi_profile_stack_t* stack);
uintptr_t                 _mi_profile_address(uint32_t i);

// Around a fork.
void _mi_profile_lock(void);
void _mi_profile_unlock(void);

// For tests: so many blocks are enough.
void _mi_profile_limit(size_t n_blocks);
