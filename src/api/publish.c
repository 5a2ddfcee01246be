// The statistics in a file that other processes map.  Layer: api.  See publish.h.
#include "publish.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "../heap/background.h"
#include "../heap/event.h"
#include "../support/format.h"
#include "../support/message.h"
#include "../support/options.h"
#include "file.h"
#include "stats.h"

#define PUBLISH_MS       10  // between two updates at least; the library's thread makes its rounds less often
#define PUBLISH_CHILD_MS 100 // after a fork; most children are another program by then
#define PUBLISH_COST     50  // an update takes no more than one part of so many of the time
#define PUBLISH_COST_MAX ((int64_t)1000000000) // ns; what took longer was stopped
#define PUBLISH_PATH_MAX 256
#define PUBLISH_FILES    4096 // names that are looked at for files of processes that have ended

// ---- the format -----------------------------------------------------------------------------------------------------

#define PUBLISH_MAGIC  "MISTATS\n"
#define PUBLISH_FORMAT 1

typedef enum publish_state_e { PUBLISH_LIVE = 1, PUBLISH_ENDED } publish_state_t;

typedef enum publish_kind_e {
  PUBLISH_COUNTER, // int64_t
  PUBLISH_AMOUNT,  // total, peak, current, int64_t each
  PUBLISH_SIZE     // int64_t that does not change; INT64_MAX: no limit
} publish_kind_t;

// `count` values from `offset` on.
typedef struct publish_entry_s {
  char     name[40];
  uint32_t offset;
  uint16_t kind;
  uint16_t count;
} publish_entry_t;

typedef struct publish_header_s {
  char                magic[8]; // written when all is there
  uint32_t            format;
  uint32_t            header_size;
  uint64_t            size;     // of the file
  mi_atomic(uint32_t) sequence; // PB3
  mi_atomic(uint32_t) state;
  uint64_t            pid, pid_space, started;
  int64_t             updated_ms; // by the monotonic clock
  uint64_t            n_updates;
  uint32_t            entries, n_entries, entry_size; // the table: offset, number and size of its entries
  uint32_t            version;                        // MI_MALLOC_VERSION
  uint32_t            stat_version;                   // MI_STAT_VERSION
  char                program[60];
} publish_header_t;
mi_static_assert(sizeof(publish_header_t) == 152, "the same on every system, for readers");

#define PUBLISH_BINS (MI_BIN_HUGE + 1)

typedef struct publish_values_s {
  mi_stats_t stats;
  int64_t    bin_sizes[PUBLISH_BINS];
} publish_values_t;

#define PUBLISH_AT(field) ((uint32_t)(offsetof(publish_page_t, values) + offsetof(publish_values_t, field)))

#define MI_STAT_COUNT(name)   +1
#define MI_STAT_COUNTER(name) +1
enum { PUBLISH_N_ENTRIES = MI_STAT_FIELDS() + 3 };
#undef MI_STAT_COUNT
#undef MI_STAT_COUNTER

typedef struct publish_page_s {
  publish_header_t header;
  publish_entry_t  entries[PUBLISH_N_ENTRIES];
  publish_values_t values;
} publish_page_t;

static const publish_entry_t publish_entries[PUBLISH_N_ENTRIES] = {
#define MI_STAT_COUNT(name)   {#name, PUBLISH_AT(stats.name), PUBLISH_AMOUNT, 1},
#define MI_STAT_COUNTER(name) {#name, PUBLISH_AT(stats.name), PUBLISH_COUNTER, 1},
    MI_STAT_FIELDS() // clang-format keeps the rows together
#undef MI_STAT_COUNT
#undef MI_STAT_COUNTER
    {"malloc_bins", PUBLISH_AT(stats.malloc_bins), PUBLISH_AMOUNT, PUBLISH_BINS},
    {"page_bins", PUBLISH_AT(stats.page_bins), PUBLISH_AMOUNT, PUBLISH_BINS},
    {"bin_sizes", PUBLISH_AT(bin_sizes), PUBLISH_SIZE, PUBLISH_BINS},
};

// ---- state: guarded by the lock of rounds ---------------------------------------------------------------------------

static publish_page_t*                publish_page; // NULL: nothing is published
static size_t                         publish_size;
static long                           publish_mode;
static bool                           publish_is_child; // of a process that published, and has no file of its own yet
static int64_t                        publish_due_ms;
static char                           publish_path[PUBLISH_PATH_MAX];
static size_t                         publish_directory; // characters of it, with the last slash
static mi_mostly_unused mi_snapshot_t publish_snapshot;  // too large for the stacks of some threads

// ---- writing --------------------------------------------------------------------------------------------------------

// The values stay what they were if they are not known, at the end of the process.
static void publish_update(publish_state_t state) {
  publish_header_t* header = &publish_page->header;
  int64_t           start = _mi_prim_clock_ns();
  bool              is_known = _mi_stats_take(&publish_snapshot, NULL, NULL, false);
  uint32_t          sequence = mi_load_relaxed(&header->sequence);
  mi_store_relaxed(&header->sequence, sequence + 1);
  mi_fence_seq_cst();
  if (is_known) publish_page->values.stats = publish_snapshot.stats;
  if (is_known) header->updated_ms = _mi_prim_clock_ms();
  header->n_updates++;
  mi_store_relaxed(&header->state, (uint32_t)state);
  mi_store_release(&header->sequence, sequence + 2); // PB3
  int64_t cost_ms = mi_min_signed(_mi_prim_clock_ns() - start, PUBLISH_COST_MAX) * PUBLISH_COST / 1000000;
  publish_due_ms = header->updated_ms + (cost_ms > PUBLISH_MS ? cost_ms : PUBLISH_MS);
}

static void publish_fill(publish_page_t* page, const mi_prim_self_t* self) {
  publish_header_t* header = &page->header;
  header->format = PUBLISH_FORMAT;
  header->header_size = sizeof(*header);
  header->size = publish_size;
  header->pid = self->pid;
  header->pid_space = self->pid_space;
  header->started = self->started;
  header->entries = (uint32_t)offsetof(publish_page_t, entries);
  header->n_entries = PUBLISH_N_ENTRIES;
  header->entry_size = sizeof(publish_entry_t);
  header->version = MI_MALLOC_VERSION;
  header->stat_version = MI_STAT_VERSION;
  memcpy(header->program, self->name, sizeof(self->name));
  memcpy(page->entries, publish_entries, sizeof(publish_entries));
  for (size_t bin = 0; bin < PUBLISH_BINS; bin++) {
    page->values.bin_sizes[bin] = (bin == MI_BIN_HUGE ? INT64_MAX : (int64_t)mi_stats_get_bin_size(bin));
  }
}

// ---- files ----------------------------------------------------------------------------------------------------------

static const char* publish_number(const char* text, uint64_t* n) {
  const char* s = text;
  for (*n = 0; *s >= '0' && *s <= '9'; s++) *n = *n * 10 + (uint64_t)(*s - '0');
  return s == text ? NULL : s;
}

// Removes what processes have left that had no time, or no right, to remove it.  Where the pid namespace is not known, a file may
// be of a process in another one.
static void publish_sweep(const char* name, void* arg) {
  const mi_prim_self_t* self = (const mi_prim_self_t*)arg;
  uint64_t              pid, space;
  const char*           s = _mi_option_skip(name, "mimalloc-");
  if (s == NULL || (s = publish_number(s, &pid)) == NULL || *s != '-') return;
  if ((s = publish_number(s + 1, &space)) == NULL || strcmp(s, ".stats") != 0) return;
  if (space != self->pid_space || space == 0 || pid == 0 || pid > INT32_MAX || _mi_prim_process_exists(pid)) return;
  _mi_format(publish_path + publish_directory, sizeof(publish_path) - publish_directory, "%s", name);
  _mi_prim_file_remove(publish_path);
}

// All of it is written before it is mapped: where no room is left, an access to a mapping would end the process.
static int publish_map(intptr_t file, void* start) {
  static const char zeros[512] = {0};
  int               err = 0;
  for (size_t n = 0; n < publish_size && err == 0; n += sizeof(zeros)) {
    err = _mi_prim_file_write(file, zeros, mi_min(sizeof(zeros), publish_size - n));
  }
  return err != 0 ? err : _mi_prim_file_map(file, publish_size, (void**)start);
}

// Makes the file in the directory that publish_path begins with.
static int publish_make(const mi_prim_self_t* self) {
  void* start = NULL;
  publish_size = mi_align_up(sizeof(publish_page_t), _mi_prim_os_page_size());
  _mi_format(publish_path + publish_directory, sizeof(publish_path) - publish_directory, "mimalloc-%llu-%llu.stats",
             (unsigned long long)self->pid, (unsigned long long)self->pid_space);
  int err = _mi_file_make(publish_path, &publish_map, &start);
  if (err == EEXIST && _mi_prim_file_is_mapped(publish_path + publish_directory)) return EBUSY; // PB6
  // Of an earlier process, or of this one before an exec.
  if (err == EEXIST && _mi_prim_file_remove(publish_path) == 0) {
    err = _mi_file_make(publish_path, &publish_map, &start);
  }
  if (err != 0 && start != NULL) _mi_prim_release(start, publish_size);
  if (err != 0) return err;
  publish_page = (publish_page_t*)start;
  publish_fill(publish_page, self);
  publish_update(PUBLISH_LIVE);
  mi_fence_seq_cst();
  memcpy(publish_page->header.magic, PUBLISH_MAGIC, sizeof(publish_page->header.magic));
  return 0;
}

static int publish_make_in(const char* directory, mi_prim_self_t* self) {
  size_t length = strlen(directory);
  if (directory[0] != '/') return EINVAL; // it would be another one after a chdir
  if (length + 64 > sizeof(publish_path)) return ENAMETOOLONG;
  publish_directory = _mi_format(publish_path, sizeof(publish_path), "%s/", directory);
  _mi_prim_file_list(directory, PUBLISH_FILES, &publish_sweep, self);
  return publish_make(self);
}

static int publish_start(void) {
  mi_prim_self_t self;
  publish_path[0] = 0;
  int         err = _mi_prim_self(&self);
  const char* directory = _mi_option_text("publish_dir");
  if (err != 0) return err;
  if (directory != NULL && directory[0] != 0) return publish_make_in(directory, &self);
  err = ENOTSUP;
  for (size_t i = 0; err != 0 && err != EBUSY && (directory = _mi_prim_file_directory(i)) != NULL; i++) {
    err = publish_make_in(directory, &self);
  }
  return err;
}

static void publish_stop(void) {
  publish_update(PUBLISH_ENDED);
  _mi_prim_file_remove(publish_path);
  _mi_prim_release(publish_page, publish_size);
  publish_page = NULL;
}

// ---- rounds ---------------------------------------------------------------------------------------------------------

// PB5: that the memory is shared, the child has from its parent.
static void publish_leave_parent(void) {
  if (publish_page != NULL) _mi_prim_release(publish_page, publish_size);
  publish_page = NULL;
  publish_is_child = (publish_mode == 2);
  publish_due_ms = _mi_prim_clock_ms() + PUBLISH_CHILD_MS;
  if (!publish_is_child) _mi_background_observe(NULL);
}

// If it cannot, it is not tried again: the directory was good enough for the parent.
static void publish_start_child(void) {
  mi_prim_self_t self;
  publish_is_child = false;
  if (_mi_prim_self(&self) != 0 || publish_make(&self) != 0) _mi_background_observe(NULL);
}

static void publish_observe(mi_background_event_t event) {
  if (event == MI_BACKGROUND_CHILD) publish_leave_parent();
  else if (_mi_prim_clock_ms() < publish_due_ms) return;
  else if (publish_is_child) publish_start_child();
  else if (publish_page != NULL) publish_update(PUBLISH_LIVE);
}

// ---- the option -----------------------------------------------------------------------------------------------------

static const char* publish_reason(int err) {
  if (err == ENOENT) return "the directory does not exist, or /proc is not mounted";
  if (err == EINVAL) return "the name of the directory does not begin with a slash";
  if (err == EBUSY) return "another copy of the library in this process publishes its own";
  return err == EEXIST ? "this user may not write there" : _mi_file_reason(err);
}

static void publish_warn(int err) {
  bool has_path = (publish_path[0] != 0 && err != ENAMETOOLONG);
  _mi_message_warning("the statistics are not published%s%s: %s (error %d).", has_path ? " in " : "",
                      has_path ? publish_path : "", publish_reason(err), err);
}

static int publish_obey_locked(long mode) {
  int err = 0;
  publish_mode = mode;
  publish_is_child = false;
  if (mode == 0 && publish_page != NULL) publish_stop();
  else if (mode != 0 && publish_page == NULL) err = publish_start();
  _mi_background_observe(publish_page != NULL ? &publish_observe : NULL);
  return err;
}

static void publish_obey(void) {
  _mi_background_lock();
  long mode = _mi_option_get_fast(mi_option_publish_row); // with the lock: the last that was set is what is obeyed last
  int  err = publish_obey_locked(mode);
  _mi_background_unlock();
  if (err != 0) publish_warn(err); // whoever is told may allocate
  else if (mode != 0) _mi_event_wake();
}

void _mi_publish_init(void) {
  _mi_options_on_publish(&publish_obey);
  if (!_mi_options_all_default() && _mi_option_get_fast(mi_option_publish_row) != 0) publish_obey();
}

// It may be the program's handler of a signal that ends it, anywhere: a round is not waited for, nor any lock for long.
void _mi_publish_done(void) {
  if (mi_likely(_mi_option_get_fast(mi_option_publish_row) == 0) || !_mi_background_try_lock()) return;
  if (publish_page != NULL) {
    publish_update(PUBLISH_ENDED);
    if (publish_mode == 2) _mi_prim_file_remove(publish_path);
    if (_mi_prim_is_unloadable())
      _mi_prim_release(publish_page, publish_size); // or nobody could publish any more (PB6)
    publish_page = NULL;
  }
  _mi_background_unlock();
}
