// The heap profile: its switch, its files, and what it prints.  Layer: api.
#include "profile.h"

#include <errno.h>
#include <string.h>

#include "../heap/event.h"
#include "../heap/profile.h"
#include "../heap/sampler.h"
#include "../support/format.h"
#include "../support/message.h"
#include "../support/options.h"
#include "file.h"
#include "profile_write.h"

#define PROFILE_RATE_DEFAULT (512 * MI_KiB)
#define PROFILE_PREFIX_MAX   800
#define PROFILE_PATH_MAX     (PROFILE_PREFIX_MAX + 48)
#define PROFILE_TRIES        10000 // numbers of files, if others have written such files before

static char                profile_prefix[PROFILE_PREFIX_MAX + 1] = "mimalloc";
static bool                profile_is_wanted; // a file at the end
static mi_atomic(uint32_t) profile_n_files;
// One more than the process id of who writes; of a parent: nobody does any more.
static mi_atomic(size_t)   profile_writer;
static mi_atomic(int64_t)  profile_started_ms;

// ---- the switch -----------------------------------------------------------------------------------------------------

// Threads that switch at the same time may tell the sampler in another order: each repeats it until what it told is what holds.
static void profile_switch(size_t mean) {
  _mi_profile_set_mean(mean);
  do _mi_sampler_set_mean(mean = _mi_profile_mean());
  while (mean != _mi_profile_mean());
}

int mi_profile_start(size_t rate) mi_attr_noexcept {
  if (rate == 0) rate = (size_t)_mi_option_get_fast(mi_option_profile_rate);
  if (rate == 0) rate = PROFILE_RATE_DEFAULT;
  int err = _mi_profile_init();
  if (err != 0) return err;
  int64_t none = 0;
  mi_cas_strong(&profile_started_ms, &none, _mi_prim_clock_ms() | 1, relaxed, relaxed);
  profile_switch(mi_min(rate, MI_RATE_MAX));
  return 0;
}

void mi_profile_stop(void) mi_attr_noexcept {
  profile_switch(0);
}

void mi_profile_get_info(mi_profile_info_t* info) mi_attr_noexcept {
  mi_profile_counts_t counts;
  _mi_profile_counts(&counts);
  info->rate = counts.mean;
  info->samples = counts.n_samples;
  info->live = counts.n_blocks;
  info->stacks = counts.n_stacks == 0 ? 0 : counts.n_stacks - 1;
  info->dropped = counts.n_dropped;
  info->other = counts.n_other;
}

// ---- files ----------------------------------------------------------------------------------------------------------

// EINVAL: it was never started.
static int profile_begin_writing(void) {
  if (_mi_profile_n_stacks() == 0) return EINVAL;
  size_t self = _mi_prim_process_id() + 1, writer = mi_load_relaxed(&profile_writer);
  if (writer == self || !mi_cas_strong(&profile_writer, &writer, self, acquire, relaxed)) return EBUSY;
  return 0;
}

static void profile_end_writing(void) {
  mi_store_release(&profile_writer, (size_t)0);
}

static int profile_write(mi_profile_write_fun* write, void* arg) {
  return _mi_profile_write(write, arg, _mi_prim_clock_ms() - mi_load_relaxed(&profile_started_ms));
}

int mi_profile_dump_to(mi_profile_write_fun* write, void* arg) mi_attr_noexcept {
  int err = (write == NULL ? EINVAL : profile_begin_writing());
  if (err != 0) return err;
  int saved = errno; // the program's function may change it
  err = profile_write(write, arg);
  profile_end_writing();
  errno = saved;
  return err;
}

static int mi_cdecl profile_write_part(const void* data, size_t size, void* arg) {
  return _mi_prim_file_write(*(intptr_t*)arg, data, size);
}

static int profile_fill(intptr_t file, void* arg) {
  (void)arg;
  return profile_write(&profile_write_part, &file);
}

// The name is taken by an empty file, and the profile written under another one: whoever waits for it finds it whole.
static int profile_make(const char* path) {
  char part[PROFILE_PATH_MAX + 8];
  int  err = _mi_file_make(path, NULL, NULL);
  if (err != 0) return err;
  _mi_format(part, sizeof(part), "%s.part", path);
  err = _mi_file_make(part, &profile_fill, NULL);
  if (err == 0 && (err = _mi_prim_file_rename(part, path)) != 0) _mi_prim_file_remove(part);
  if (err != 0) _mi_prim_file_remove(path);
  return err;
}

static int profile_make_next(char* path) {
  int err = EEXIST;
  for (int i = 0; i < PROFILE_TRIES && err == EEXIST; i++) {
    uint32_t number = mi_fetch_add_relaxed(&profile_n_files, 1) + 1;
    _mi_format(path, PROFILE_PATH_MAX, "%s.%zu.%04u.pb", profile_prefix, _mi_prim_process_id(), (unsigned)number);
    err = profile_make(path);
  }
  return err;
}

// NULL: to the next name, which is written to `next`.
static int profile_dump(const char* path, char* next) {
  int err = profile_begin_writing();
  if (err != 0) return err;
  err = (path == NULL ? profile_make_next(next) : profile_make(path));
  profile_end_writing();
  return err;
}

int mi_profile_dump(const char* path) mi_attr_noexcept {
  char next[PROFILE_PATH_MAX];
  if (path != NULL && _mi_format_length(path) >= PROFILE_PATH_MAX) return ENAMETOOLONG;
  return profile_dump(path, next);
}

static const char* profile_reason(int err) {
  if (err == EINVAL) return "it was never started";
  return err == EBUSY ? "another thread is just writing one" : _mi_file_reason(err);
}

// The name comes last: a long one is cut off.
static void profile_dump_or_warn(void) {
  char path[PROFILE_PATH_MAX] = "";
  int  err = profile_dump(NULL, path);
  if (err == 0) _mi_message_print(1, "heap profile: %s\n", path);
  else _mi_message_warning("the heap profile cannot be written: %s (error %d) %s\n", profile_reason(err), err, path);
}

// ---- what is in use -------------------------------------------------------------------------------------------------

#define PROFILE_LEAKS_MAX 64

// The stack with the most bytes in use of those that come after another in this order; 0: there is none.
static uint32_t profile_next_leak(uint32_t last, int64_t last_bytes) {
  uint32_t best = UINT32_MAX;
  int64_t  best_bytes = 0;
  for (uint32_t i = 0; i < _mi_profile_n_stacks(); i++) {
    const mi_profile_stack_t* stack = _mi_profile_stack(i);
    int64_t                   bytes = (stack == NULL ? 0 : mi_load_relaxed(&((mi_profile_stack_t*)stack)->live));
    bool                      is_after = bytes < last_bytes || (bytes == last_bytes && i > last && last != UINT32_MAX);
    if (!is_after || bytes <= best_bytes) continue;
    best = i;
    best_bytes = bytes;
  }
  return best;
}

static void profile_print_stack(const mi_profile_stack_t* stack, mi_output_fun* out, void* arg) {
  const uint32_t* frames = _mi_profile_frames(stack);
  for (uint32_t i = 0; i < stack->n_frames; i++) {
    char      name[200];
    uintptr_t offset, address = _mi_profile_address(frames[i]);
    if (_mi_prim_find_module(address, name, sizeof(name), &offset)) {
      _mi_message_raw(out, arg, "  %s+0x%zx\n", name, (size_t)offset);
    }
    else {
      _mi_message_raw(out, arg, "  %p\n", (void*)address);
    }
  }
}

void mi_profile_print_leaks(size_t n_max, mi_output_fun* out, void* arg) mi_attr_noexcept {
  uint32_t i = UINT32_MAX;
  int64_t  bytes = INT64_MAX;
  for (size_t n = 0; n < mi_min(n_max, PROFILE_LEAKS_MAX); n++) {
    if ((i = profile_next_leak(i, bytes)) == UINT32_MAX) break;
    mi_profile_stack_t* stack = (mi_profile_stack_t*)_mi_profile_stack(i);
    bytes = mi_load_relaxed(&stack->live);
    int64_t blocks = mi_load_relaxed(&stack->n_live) >> MI_PROFILE_PLACES;
    _mi_message_raw(out, arg, "in use: about %zu bytes in %zu blocks, allocated by%s\n", (size_t)bytes, (size_t)blocks,
                    i == 0 ? " several stacks" : (stack->n_frames == 0 ? " an unknown stack" : ""));
    profile_print_stack(stack, out, arg);
  }
}

// ---- the process ----------------------------------------------------------------------------------------------------

static void profile_answer(int value) {
  mi_profile_info_t info;
  mi_profile_get_info(&info);
  if (value == 0) value = (info.rate == 0 ? 1 : 3);
  int err = (value == 1 ? mi_profile_start(0) : 0);
  if (err != 0) _mi_message_warning("the heap profile cannot be started (error %d).\n", err);
  if (value == 2) mi_profile_stop();
  if (value == 3) profile_dump_or_warn();
}

// False: the environment names no place for the files.
static bool profile_read_prefix(void) {
  const char* text = _mi_option_text("profile");
  if (text == NULL) return false;
  size_t n = _mi_format_length(text);
  if (n == 0 || n > PROFILE_PREFIX_MAX) {
    _mi_options_warn_text("profile", text, n == 0 ? "is empty" : "is too long for the start of a file name", "off");
    return false;
  }
  memcpy(profile_prefix, text, n + 1);
  return true;
}

void _mi_profile_begin(void) {
  bool has_prefix = profile_read_prefix();
  int  sig = (int)_mi_option_get_fast(mi_option_profile_signal), err = 0;
  if (sig > 0) {
    _mi_profile_prepare();
    _mi_event_on_request(&profile_answer);
    err = _mi_prim_signal_init(sig, &_mi_event_request);
    if (err != 0) {
      _mi_message_warning("no heap profile by signal %d: %s (error %d).\n", sig,
                          err == EBUSY ? "there is a handler for it already" : "it cannot be handled", err);
    }
  }
  profile_is_wanted = has_prefix;
  bool starts = (has_prefix && sig <= 0) || _mi_option_get_fast(mi_option_profile_leaks) > 0;
  if (!starts) return;
  err = mi_profile_start(0);
  if (err == ENOTSUP) _mi_message_warning("no heap profile in a build for a tool that watches every block.\n");
  else if (err != 0) _mi_message_warning("the heap profile cannot be started (error %d).\n", err);
}

void _mi_profile_end(void) {
  if (_mi_profile_n_stacks() == 0) return;
  long n_leaks = _mi_option_get_fast(mi_option_profile_leaks);
  if (profile_is_wanted) profile_dump_or_warn();
  if (n_leaks > 0) mi_profile_print_leaks((size_t)n_leaks, NULL, NULL);
}
