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
#include "profile_write.h"

#define PROFILE_RATE_DEFAULT (512 * MI_KiB)
#define PROFILE_RATE_MAX     ((size_t)1 << 30)
#define PROFILE_PREFIX_MAX   800
#define PROFILE_PATH_MAX     (PROFILE_PREFIX_MAX + 48)
#define PROFILE_TRIES        10000 // numbers of files, if others have written such files before

static char                profile_prefix[PROFILE_PREFIX_MAX + 1] = "mimalloc";
static bool                profile_is_wanted; // a file at the end
static mi_atomic(uint32_t) profile_n_files;
static mi_atomic(bool)     profile_is_writing;
static mi_atomic(int64_t)  profile_started_ms;

// ---- the switch -----------------------------------------------------------------------------------------------------

int mi_profile_start(size_t rate) mi_attr_noexcept {
  if (rate == 0) rate = (size_t)_mi_option_get_fast(mi_option_profile_rate);
  if (rate == 0) rate = PROFILE_RATE_DEFAULT;
  int err = _mi_profile_init();
  if (err != 0) return err;
  int64_t none = 0;
  mi_cas_strong(&profile_started_ms, &none, _mi_prim_clock_ms() | 1, relaxed, relaxed);
  rate = mi_min(rate, PROFILE_RATE_MAX);
  _mi_profile_set_mean(rate);
  _mi_sampler_set_mean(rate);
  return 0;
}

void mi_profile_stop(void) mi_attr_noexcept {
  _mi_sampler_set_mean(0);
  _mi_profile_set_mean(0);
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

int mi_profile_dump_to(mi_profile_write_fun* write, void* arg) mi_attr_noexcept {
  if (_mi_profile_n_stacks() == 0) return EINVAL;
  if (mi_exchange_acq_rel(&profile_is_writing, true)) return EBUSY;
  int err = _mi_profile_write(write, arg, _mi_prim_clock_ms() - mi_load_relaxed(&profile_started_ms));
  mi_store_release(&profile_is_writing, false);
  return err;
}

static int mi_cdecl profile_write_file(const void* data, size_t size, void* arg) {
  return _mi_prim_file_write(*(intptr_t*)arg, data, size);
}

// Under another name first: whoever waits for the file finds it whole.
static int profile_fill(const char* path) {
  char     part[PROFILE_PATH_MAX + 8];
  intptr_t file;
  _mi_format(part, sizeof(part), "%s.part", path);
  int err = _mi_prim_file_create(part, &file);
  if (err != 0) return err;
  err = mi_profile_dump_to(&profile_write_file, &file);
  int err_close = _mi_prim_file_close(file);
  if (err == 0) err = err_close;
  return err == 0 ? _mi_prim_file_rename(part, path) : err;
}

static int profile_claim(const char* path) {
  intptr_t file;
  int      err = _mi_prim_file_create(path, &file);
  return err != 0 ? err : _mi_prim_file_close(file);
}

static int profile_dump_next(char* path) {
  int err = EEXIST;
  for (int i = 0; i < PROFILE_TRIES && err == EEXIST; i++) {
    uint32_t number = mi_fetch_add_relaxed(&profile_n_files, 1) + 1;
    _mi_format(path, PROFILE_PATH_MAX, "%s.%zu.%04u.pb", profile_prefix, _mi_prim_process_id(), (unsigned)number);
    err = profile_claim(path);
  }
  return err != 0 ? err : profile_fill(path);
}

int mi_profile_dump(const char* path) mi_attr_noexcept {
  char next[PROFILE_PATH_MAX];
  if (_mi_profile_n_stacks() == 0) return EINVAL;
  if (path == NULL) return profile_dump_next(next);
  if (_mi_format_length(path) >= PROFILE_PATH_MAX) return ENAMETOOLONG;
  int err = profile_claim(path);
  return err != 0 ? err : profile_fill(path);
}

static void profile_dump_or_warn(void) {
  char path[PROFILE_PATH_MAX] = "";
  int  err = (_mi_profile_n_stacks() == 0 ? EINVAL : profile_dump_next(path));
  if (err != 0) _mi_message_warning("the heap profile %s cannot be written (error %d).\n", path, err);
  else _mi_message_print(1, "heap profile: %s\n", path);
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
    _mi_event_on_request(&profile_answer);
    err = _mi_prim_signal_init(sig, &_mi_event_request);
    if (err != 0) {
      _mi_message_warning("no heap profile by signal %d: %s (error %d).\n", sig,
                          err == EBUSY ? "the program handles it" : "it cannot be handled", err);
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
