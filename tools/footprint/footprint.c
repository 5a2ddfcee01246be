// Where the memory of another process lies, by the library's own structures: read with process_vm_readv and from its page
// map while it is stopped.  scripts/footprint.py starts it, and names the addresses.
//
//   footprint PID REGIONS N_REGIONS FIRST_THEAP
//
// Prints one line per class, `class SIZE PAGES CAPACITY EXTENDED USED BINS RESIDENT` (blocks; RESIDENT in KiB), and one line
// per other kind of memory, `NAME KIB`.  The layouts are those of the headers that it was compiled with, so it fits that
// library only.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../../src/heap/theap.h"

typedef struct footprint_class_s {
  size_t pages, capacity, extended, used, bins, resident;
} footprint_class_t;

typedef struct footprint_s {
  pid_t             pid;
  int               page_map;
  size_t            os_page;
  footprint_class_t classes[MI_CLASS_COUNT];
  size_t            large, meta, tables;  // resident OS pages
  size_t            free[MI_CHUNK_KINDS]; // the same, of free slices, by the kind of their chunk
} footprint_t;

static bool footprint_read(const footprint_t* f, uintptr_t from, void* to, size_t size) {
  struct iovec local = {to, size}, remote = {(void*)from, size};
  return process_vm_readv(f->pid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

// OS pages of a range that are resident; at most of a chunk at a time.
static size_t footprint_resident(const footprint_t* f, uintptr_t from, size_t size) {
  uint64_t entries[MI_CHUNK_SIZE / 4096];
  size_t   n = mi_min(size / f->os_page, sizeof(entries) / sizeof(entries[0])), count = 0;
  if (pread(f->page_map, entries, n * 8, (off_t)(from / f->os_page * 8)) != (ssize_t)(n * 8)) return 0;
  for (size_t i = 0; i < n; i++) count += (entries[i] >> 63) & 1;
  return count;
}

// ---- bins -------------------------------------------------------------------------------------------------------------

static size_t footprint_count_list(const footprint_t* f, const mi_block_t* block) {
  size_t n = 0;
  for (; block != NULL && n < 100000; n++) {
    if (!footprint_read(f, (uintptr_t)block, (void*)&block, sizeof(block))) break;
  }
  return n;
}

static void footprint_add_drains(footprint_t* f, const mi_theap_t* theap) {
  for (size_t i = 0; i < MI_DRAINS; i++) {
    mi_page_t page;
    if (theap->drains[i].page == NULL || !footprint_read(f, (uintptr_t)theap->drains[i].page, &page, sizeof(page)))
      continue;
    if (page.cls < MI_CLASS_COUNT) f->classes[page.cls].bins += footprint_count_list(f, theap->drains[i].bin.head);
  }
}

static void footprint_add_theaps(footprint_t* f, uintptr_t first) {
  static mi_theap_t theap;
  for (uintptr_t at = first; at != 0 && footprint_read(f, at, &theap, sizeof(theap)); at = (uintptr_t)theap.next) {
    for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++)
      f->classes[cls].bins += footprint_count_list(f, theap.bins[cls].head);
    footprint_add_drains(f, &theap);
  }
}

// ---- pages ------------------------------------------------------------------------------------------------------------

static void footprint_add_page(footprint_t* f, const mi_page_t* page, size_t resident) {
  if (page->kind == MI_PAGE_LARGE) f->large += resident;
  else if (page->kind == MI_PAGE_BLOCKS && page->cls < MI_CLASS_COUNT) {
    footprint_class_t* sum = &f->classes[page->cls];
    sum->pages++;
    sum->capacity += page->capacity;
    sum->extended += page->extended;
    sum->used += page->used;
    sum->resident += resident;
  }
}

// Gives how many slices it has looked at.
static size_t footprint_add_slice(footprint_t* f, const mi_region_t* region, const mi_chunk_t* chunk, size_t slice) {
  uintptr_t start = region->base + (slice << MI_SLICE_SHIFT);
  size_t    in_chunk = slice % MI_CHUNK_SLICES, n = 1, resident = 0;
  mi_page_t page;
  if (((chunk->free_bits >> in_chunk) & 1) != 0) {
    f->free[chunk->kind] += footprint_resident(f, start, MI_SLICE_SIZE);
    return 1;
  }
  if (chunk->kind == MI_CHUNK_META) {
    f->meta += footprint_resident(f, start, MI_SLICE_SIZE);
    return 1;
  }
  if (!footprint_read(f, (uintptr_t)region->table + slice * MI_DESCRIPTOR_SIZE, &page, sizeof(page))) return 1;
  if (page.kind == MI_PAGE_BLOCKS || page.kind == MI_PAGE_LARGE) n = page.n_slices;
  for (size_t i = 0; i < n; i++) resident += footprint_resident(f, start + i * MI_SLICE_SIZE, MI_SLICE_SIZE);
  footprint_add_page(f, &page, resident);
  return n;
}

static size_t footprint_range(const footprint_t* f, const void* start, size_t size) {
  uintptr_t from = mi_align_down((uintptr_t)start, f->os_page), to = mi_align_up((uintptr_t)start + size, f->os_page);
  size_t    n = 0;
  for (size_t part; from < to; from += part) {
    part = mi_min(to - from, MI_CHUNK_SIZE);
    n += footprint_resident(f, from, part);
  }
  return n;
}

static void footprint_add_region(footprint_t* f, const mi_region_t* region) {
  if (region->base == 0 || region->origin == MI_REGION_LOST) return;
  f->tables += footprint_range(f, region->table, region->n_open * MI_CHUNK_SLICES * MI_DESCRIPTOR_SIZE);
  f->tables += footprint_range(f, region->chunks, region->n_open * sizeof(mi_chunk_t));
  f->tables += footprint_range(f, region->free_chunks, region->n_open / 8 + 1);
  for (size_t slice = 0; slice < region->n_used * MI_CHUNK_SLICES;) {
    mi_chunk_t chunk;
    if (!footprint_read(f, (uintptr_t)&region->chunks[slice / MI_CHUNK_SLICES], &chunk, sizeof(chunk))) return;
    slice += footprint_add_slice(f, region, &chunk, slice);
  }
}

// ---- printing ---------------------------------------------------------------------------------------------------------

static const char* const footprint_kinds[MI_CHUNK_KINDS] = {"none", "small", "medium", "mixed", "meta", "huge"};

static void footprint_print(const footprint_t* f) {
  size_t kib = f->os_page / 1024;
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    const footprint_class_t* c = &f->classes[cls];
    if (c->pages == 0) continue;
    printf("class %zu %zu %zu %zu %zu %zu %zu\n", _mi_size_class_block(cls), c->pages, c->capacity, c->extended,
           c->used, c->bins, c->resident * kib);
  }
  printf("large %zu\n", f->large * kib);
  for (size_t kind = 0; kind < MI_CHUNK_KINDS; kind++)
    printf("free-%s %zu\n", footprint_kinds[kind], f->free[kind] * kib);
  printf("meta %zu\n", f->meta * kib);
  printf("tables %zu\n", f->tables * kib);
}

int main(int argc, char** argv) {
  static footprint_t f;
  static mi_region_t region;
  char               name[64];
  if (argc != 5) {
    fprintf(stderr, "usage: footprint PID REGIONS N_REGIONS FIRST_THEAP\n");
    return 2;
  }
  f.pid = (pid_t)strtol(argv[1], NULL, 10);
  f.os_page = (size_t)sysconf(_SC_PAGESIZE);
  snprintf(name, sizeof(name), "/proc/%ld/pagemap", (long)f.pid);
  f.page_map = open(name, O_RDONLY);
  if (f.page_map < 0) return perror(name), 1;
  uintptr_t all = strtoull(argv[2], NULL, 16), end = strtoull(argv[3], NULL, 16), theaps = strtoull(argv[4], NULL, 16);
  size_t    n_regions = 0;
  if (!footprint_read(&f, end, &n_regions, sizeof(n_regions)) || !footprint_read(&f, theaps, &theaps, sizeof(theaps))) {
    return perror("process_vm_readv"), 1;
  }
  footprint_add_theaps(&f, theaps);
  for (size_t i = 0; i < n_regions; i++) {
    if (footprint_read(&f, all + i * sizeof(region), &region, sizeof(region))) footprint_add_region(&f, &region);
  }
  footprint_print(&f);
  return 0;
}
