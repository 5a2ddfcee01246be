// The blocks that virtual threads share.
#include "blocks.h"

#include <string.h>

block_t blocks[BLOCKS_MAX];
size_t  n_blocks;

static uint64_t n_keys;

static uint64_t* last_word(const block_t* block) {
  return (uint64_t*)(void*)(block->p + (block->size & ~(size_t)7) - 8);
}

static void check(const block_t* block) {
  uint64_t first = *(uint64_t*)(void*)block->p, last = *last_word(block);
  if (first == block->key && last == block->key) return;
  schedule_fail("the block %p of %zu bytes, of task %zu, was given to somebody else: %#llx and %#llx, not %#llx",
                (void*)block->p, block->size, block->task, (unsigned long long)first, (unsigned long long)last,
                (unsigned long long)block->key);
}

void* blocks_new(void* p, size_t size) {
  if (p == NULL) schedule_fail("no block of %zu bytes", size);
  if ((uintptr_t)p % 16 != 0) schedule_fail("a block of %zu bytes at %p", size, p);
  size_t usable = mi_usable_size(p);
  if (usable < size) schedule_fail("a block of %zu bytes at %p has %zu", size, p, usable);
  return p;
}

void blocks_add(void* p, size_t size, int heap) {
  block_t block = {(char*)p, size, ++n_keys << 8 | 0xA5, heap, schedule_task()};
  *(uint64_t*)p = block.key;
  *last_word(&block) = block.key;
  if (n_blocks == BLOCKS_MAX) schedule_fail("more than %d blocks", BLOCKS_MAX);
  blocks[n_blocks++] = block;
  schedule_note("has %p, %zu bytes, heap %d", p, size, heap);
}

block_t blocks_take(size_t i) {
  block_t block = blocks[i];
  check(&block);
  blocks[i] = blocks[--n_blocks];
  schedule_note("takes %p, %zu bytes, heap %d", (void*)block.p, block.size, block.heap);
  return block;
}

void blocks_check(void) {
  for (size_t i = 0; i < n_blocks; i++) check(&blocks[i]);
}

void blocks_end_heap(int heap, bool are_gone) {
  for (size_t i = n_blocks; i-- > 0;) {
    if (blocks[i].heap != heap) continue;
    if (are_gone) blocks_take(i);
    else blocks[i].heap = NO_HEAP;
  }
}
