// The heap profile in the format of pprof.  Layer: api.  docs/design/profile.md says what the file has.
//
// The number of a location is that of its address in the table (heap/profile.h), and one; a location without an address stands for
// stacks that are not known.
#include "profile_write.h"

#include <string.h>

#include "../heap/profile.h"
#include "../prim/prim.h"
#include "../support/format.h"
#include "../support/pprof.h"

#define WRITE_MODULES_MAX 1024
#define WRITE_NAMES_MAX   (64 * MI_KiB) // bytes of the names of modules, 64 of each; those that have no room are empty
#define WRITE_ID_MAX      32            // bytes of a build ID
#define WRITE_OTHER       ((uint64_t)1 << 40) // locations: of stack 0
#define WRITE_UNKNOWN     (WRITE_OTHER + 1)   // ... and of stacks without frames

// Static, since stacks of threads may be small; profile_writer guards them.
static mi_mostly_unused mi_pprof_t write_profile, write_message, write_inner;

// A copy of what the system knows of a module.
typedef struct write_module_s {
  uintptr_t start, end;
  uint64_t  offset;
  uint32_t  name; // where it is among the names
  uint32_t  n_id;
  uint8_t   id[WRITE_ID_MAX];
} write_module_t;

static mi_mostly_unused write_module_t write_modules[WRITE_MODULES_MAX];
static mi_mostly_unused char           write_names[WRITE_NAMES_MAX + 1]; // the last one is empty
static size_t                          write_n_modules, write_n_names;

static void write_value_type(unsigned field, uint64_t type, uint64_t unit) {
  _mi_pprof_message(&write_message);
  _mi_pprof_number(&write_message, 1, type);
  _mi_pprof_number(&write_message, 2, unit);
  _mi_pprof_sub(&write_profile, field, &write_message);
}

static void write_head(int64_t duration_ms) {
  mi_profile_counts_t counts;
  char                comment[160];
  mi_pprof_t*         p = &write_profile;
  _mi_profile_counts(&counts);
  uint64_t count = _mi_pprof_string(p, "count"), bytes = _mi_pprof_string(p, "bytes");
  uint64_t alloc_objects = _mi_pprof_string(p, "alloc_objects"), alloc_space = _mi_pprof_string(p, "alloc_space");
  uint64_t inuse_objects = _mi_pprof_string(p, "inuse_objects"), inuse_space = _mi_pprof_string(p, "inuse_space");
  write_value_type(MI_PPROF_SAMPLE_TYPE, alloc_objects, count);
  write_value_type(MI_PPROF_SAMPLE_TYPE, alloc_space, bytes);
  write_value_type(MI_PPROF_SAMPLE_TYPE, inuse_objects, count);
  write_value_type(MI_PPROF_SAMPLE_TYPE, inuse_space, bytes);
  write_value_type(MI_PPROF_PERIOD_TYPE, _mi_pprof_string(p, "space"), bytes);
  _mi_pprof_number(p, MI_PPROF_PERIOD, counts.mean);
  _mi_pprof_number(p, MI_PPROF_DURATION, (uint64_t)duration_ms * 1000000);
  _mi_pprof_number(p, MI_PPROF_DEFAULT_TYPE, inuse_space);
  // Of a program that has the library in itself, where its functions are known by their names only.
  _mi_pprof_number(p, MI_PPROF_DROP_FRAMES,
                   _mi_pprof_string(p, "(mi_.*|malloc|calloc|realloc|reallocarray|free|posix_memalign|aligned_alloc|"
                                       "memalign|valloc|pvalloc|operator new.*)"));
  _mi_format(comment, sizeof(comment),
             "mimalloc heap profile: %zu samples, %zu in use, %zu dropped, %zu of other stacks", counts.n_samples,
             counts.n_blocks, counts.n_dropped, counts.n_other);
  _mi_pprof_number(p, MI_PPROF_COMMENT, _mi_pprof_string(p, comment));
}

static uint32_t write_keep_name(const char* name) {
  size_t n = strlen(name) + 1, at = write_n_names;
  if (n > WRITE_NAMES_MAX - at) return WRITE_NAMES_MAX;
  memcpy(write_names + at, name, n);
  write_n_names += n;
  return (uint32_t)at;
}

// The loader's lock is held: the function that the profile is written by may wait for who wants it.
static bool write_keep_module(const mi_module_t* module, void* arg) {
  write_module_t* copy = &write_modules[write_n_modules++];
  (void)arg;
  copy->start = module->start;
  copy->end = module->end;
  copy->offset = module->offset;
  copy->n_id = (uint32_t)mi_min(module->n_build_id, WRITE_ID_MAX);
  if (copy->n_id > 0) memcpy(copy->id, module->build_id, copy->n_id);
  // A module has a part for each of its segments that have code.
  const write_module_t* last = (write_n_modules > 1 ? copy - 1 : NULL);
  bool                  is_same = (last != NULL && strcmp(write_names + last->name, module->name) == 0);
  copy->name = is_same ? last->name : write_keep_name(module->name);
  return write_n_modules < WRITE_MODULES_MAX;
}

static void write_module(uint64_t number, const write_module_t* module) {
  static const char digits[] = "0123456789abcdef";
  char              id[2 * WRITE_ID_MAX + 1];
  for (size_t i = 0; i < module->n_id; i++) {
    id[2 * i] = digits[module->id[i] >> 4];
    id[2 * i + 1] = digits[module->id[i] & 15];
  }
  id[2 * module->n_id] = 0;
  uint64_t name = _mi_pprof_string(&write_profile, write_names + module->name);
  uint64_t build_id = _mi_pprof_string(&write_profile, id);
  _mi_pprof_message(&write_message);
  _mi_pprof_number(&write_message, 1, number);
  _mi_pprof_number(&write_message, 2, module->start);
  _mi_pprof_number(&write_message, 3, module->end);
  _mi_pprof_number(&write_message, 4, module->offset);
  _mi_pprof_number(&write_message, 5, name);
  _mi_pprof_number(&write_message, 6, build_id);
  _mi_pprof_sub(&write_profile, MI_PPROF_MAPPING, &write_message);
}

static void write_all_modules(void) {
  write_n_modules = write_n_names = 0;
  _mi_prim_modules(&write_keep_module, NULL);
  for (size_t i = 0; i < write_n_modules; i++) write_module((uint64_t)i + 1, &write_modules[i]);
}

static uint64_t write_module_of(uintptr_t address) {
  for (size_t i = 0; i < write_n_modules; i++) {
    if (address >= write_modules[i].start && address < write_modules[i].end) return i + 1;
  }
  return 0;
}

static void write_location(uint64_t number, uintptr_t address) {
  uint64_t module = write_module_of(address);
  _mi_pprof_message(&write_message);
  _mi_pprof_number(&write_message, 1, number);
  if (module != 0) _mi_pprof_number(&write_message, 2, module);
  _mi_pprof_number(&write_message, 3, address);
  _mi_pprof_sub(&write_profile, MI_PPROF_LOCATION, &write_message);
}

// A location that has a name only, as a function of that name; both have the same number.
static void write_named(uint64_t number, const char* name) {
  uint64_t text = _mi_pprof_string(&write_profile, name);
  _mi_pprof_message(&write_message);
  _mi_pprof_number(&write_message, 1, number);
  _mi_pprof_number(&write_message, 2, text);
  _mi_pprof_sub(&write_profile, MI_PPROF_FUNCTION, &write_message);
  _mi_pprof_message(&write_inner);
  _mi_pprof_number(&write_inner, 1, number);
  _mi_pprof_message(&write_message);
  _mi_pprof_number(&write_message, 1, number);
  _mi_pprof_sub(&write_message, 4, &write_inner);
  _mi_pprof_sub(&write_profile, MI_PPROF_LOCATION, &write_message);
}

static uint64_t write_count(mi_atomic(int64_t)* sum, unsigned places) {
  int64_t n = mi_load_relaxed(sum);
  return n <= 0 ? 0 : (uint64_t)n >> places;
}

static void write_sample(mi_profile_stack_t* stack, bool is_other) {
  uint64_t        locations[MI_PROFILE_FRAMES] = {is_other ? WRITE_OTHER : WRITE_UNKNOWN};
  uint64_t        values[4];
  const uint32_t* frames = _mi_profile_frames(stack);
  size_t          n = stack->n_frames;
  for (size_t i = 0; i < n; i++) locations[i] = (uint64_t)frames[i] + 1;
  // What is in use comes first, and is not rounded up: it is never more than what was allocated.
  values[2] = write_count(&stack->n_live, MI_PROFILE_PLACES);
  values[3] = write_count(&stack->live, 0);
  values[0] = write_count(&stack->n_allocated, 0);
  values[1] = write_count(&stack->allocated, 0);
  _mi_pprof_message(&write_message);
  _mi_pprof_packed(&write_message, 1, locations, n == 0 ? 1 : n);
  _mi_pprof_packed(&write_message, 2, values, 4);
  _mi_pprof_sub(&write_profile, MI_PPROF_SAMPLE, &write_message);
}

// Samples come before locations: a stack that is made meanwhile has locations that are too.
int _mi_profile_write(mi_profile_write_fun* write, void* arg, int64_t duration_ms) {
  uint32_t n_stacks = _mi_profile_n_stacks();
  _mi_pprof_begin(&write_profile, write, arg);
  write_head(duration_ms);
  write_all_modules();
  for (uint32_t i = 0; i < n_stacks; i++) {
    const mi_profile_stack_t* stack = _mi_profile_stack(i);
    if (stack != NULL) write_sample((mi_profile_stack_t*)stack, i == 0);
  }
  for (uint32_t i = 0; i < _mi_profile_n_addresses(); i++) write_location((uint64_t)i + 1, _mi_profile_address(i));
  write_named(WRITE_OTHER, "[other stacks]");
  write_named(WRITE_UNKNOWN, "[unknown stack]");
  return _mi_pprof_end(&write_profile);
}
