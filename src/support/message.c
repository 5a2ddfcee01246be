// Messages and errors.  Layer: support.  Owns the earlier output.
#include "message.h"

#include <errno.h>
#include <string.h>

#include "../base/bits.h"
#include "../base/probe.h"
#include "../base/track.h"
#include "../prim/lock.h"
#include "format.h"
#include "hook.h"
#include "option.h"

#define MESSAGE_MAX   512 // bytes on the stack of a thread that may have little of it
#define MESSAGE_TRIES 64  // to find something at rest that others change within a few instructions

#define MESSAGE_POSTPONED     4 // threads: faults are rare, and where there is no room they are said at once
#define MESSAGE_POSTPONED_MAX (3 * MESSAGE_MAX) // bytes of each: an error, and two lines that explain it

// ---- this thread ----------------------------------------------------------------------------------------------------

typedef struct message_thread_s {
  bool is_in_output; // MS1
  bool is_in_error;
} message_thread_t;

static MI_LOCAL(message_thread_t, message_thread);
static mi_atomic(uintptr_t) message_main_thread; // 0: not known yet

// Identifies the calling thread among those that live.
static uintptr_t message_thread_id(void) {
  return (uintptr_t)&mi_local(message_thread);
}

void _mi_message_init(void) {
  mi_store_relaxed(&message_main_thread, message_thread_id());
}

static bool message_is_main_thread(void) {
  uintptr_t main_thread = mi_load_relaxed(&message_main_thread);
  return main_thread == 0 || main_thread == message_thread_id();
}

// ---- output ---------------------------------------------------------------------------------------------------------

// What was printed before a function was registered, for one thread at a time.  Who finds it held goes without: it is
// better to lose a line here than to wait within an allocation.
#define MESSAGE_EARLIER_MAX (16 * MI_KiB)

static mi_atomic(bool)       message_earlier_is_held;
static size_t                message_earlier_length;
static mi_mostly_unused char message_earlier[MESSAGE_EARLIER_MAX + 1];

static bool message_earlier_try_hold(void) {
  for (int i = 0; i < MESSAGE_TRIES; i++) {
    bool expected = false;
    if (mi_cas_weak(&message_earlier_is_held, &expected, true, acquire, relaxed)) return true;
    mi_cpu_pause();
  }
  return false;
}

static void message_earlier_release(void) {
  mi_store_release(&message_earlier_is_held, false);
}

static void message_earlier_add(const char* text, size_t length) {
  if (!message_earlier_try_hold()) return;
  if (length <= MESSAGE_EARLIER_MAX - message_earlier_length) {
    memcpy(message_earlier + message_earlier_length, text, length + 1);
    message_earlier_length += length;
  }
  message_earlier_release();
}

static void message_call_output(mi_output_fun* out, void* arg, const char* text) {
  mi_local(message_thread).is_in_output = true;
  out(text, arg);
  mi_local(message_thread).is_in_output = false;
}

static void message_earlier_deliver(mi_output_fun* out, void* arg) {
  if (mi_local(message_thread).is_in_output || !message_earlier_try_hold()) return;
  if (message_earlier_length > 0) message_call_output(out, arg, message_earlier);
  message_earlier_length = 0;
  message_earlier_release();
}

void mi_register_output(mi_output_fun* out, void* arg) mi_attr_noexcept {
  int saved = errno;
  if (out != NULL) message_earlier_deliver(out, arg);
  _mi_hook_set(MI_HOOK_OUTPUT, (mi_hook_fun_t)out, arg);
  if (out != NULL) message_earlier_deliver(out, arg); // what other threads said meanwhile
  errno = saved;
}

static void message_write_default(const char* text) {
  void*          arg;
  mi_output_fun* out = (mi_output_fun*)_mi_hook_get(MI_HOOK_OUTPUT, &arg);
  if (out != NULL && !mi_local(message_thread).is_in_output) {
    message_call_output(out, arg, text);
    return;
  }
  size_t length = strlen(text);
  if (out == NULL) message_earlier_add(text, length);
  _mi_prim_write_stderr(text, length);
}

void _mi_message_write(mi_output_fun* out, void* arg, const char* text) {
  int saved = errno;
  if (out != NULL) out(text, arg);
  else message_write_default(text);
  errno = saved;
}

// ---- messages that wait (MS4) -----------------------------------------------------------------------------------------

typedef struct message_postponed_s {
  mi_atomic(uintptr_t) thread; // of which they are; 0: of none
  int                  err;    // the first error; 0: there was none
  size_t               length;
  char                 text[MESSAGE_POSTPONED_MAX];
} message_postponed_t;

static mi_mostly_unused message_postponed_t message_postponed[MESSAGE_POSTPONED];

static void message_say_postponed(void);

static message_postponed_t* message_find_postponed(bool may_take) {
  uintptr_t self = message_thread_id();
  for (size_t i = 0; i < MESSAGE_POSTPONED; i++) {
    if (mi_load_relaxed(&message_postponed[i].thread) == self) return &message_postponed[i];
  }
  for (size_t i = 0; may_take && i < MESSAGE_POSTPONED; i++) {
    uintptr_t none = 0;
    if (mi_cas_strong(&message_postponed[i].thread, &none, self, acquire, relaxed)) return &message_postponed[i];
  }
  return NULL;
}

// NULL: there is nothing to wait for, or no room.  Within an output function nothing of the program is called (MS1).
static message_postponed_t* message_postpone(void) {
  if (!MI_LOCK_COUNTED || mi_local(message_thread).is_in_output) return NULL;
  return _mi_lock_postpone(&message_say_postponed) ? message_find_postponed(true) : NULL;
}

// In the child of a fork: those of threads that are not there any more.
static void message_forget_postponed(void) {
  for (size_t i = 0; MI_LOCK_COUNTED && i < MESSAGE_POSTPONED; i++) {
    message_postponed[i].err = 0;
    message_postponed[i].length = 0;
    mi_store_relaxed(&message_postponed[i].thread, (uintptr_t)0);
  }
}

static void message_postpone_line(message_postponed_t* postponed, const char* line) {
  size_t n = mi_min(strlen(line), MESSAGE_POSTPONED_MAX - 1 - postponed->length);
  memcpy(postponed->text + postponed->length, line, n);
  postponed->length += n;
  postponed->text[postponed->length] = 0;
}

// ---- messages -------------------------------------------------------------------------------------------------------

// A path or a name that somebody else has chosen may have in it what a terminal obeys, or what looks like another line.
static void message_make_printable(char* line, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if ((unsigned char)line[i] < ' ' || line[i] == 0x7F) line[i] = '?';
  }
}

static void message_vwrite(const char* prefix, const char* fmt, va_list args) {
  char   line[MESSAGE_MAX];
  size_t n = _mi_format(line, sizeof(line) - 1, "%s", prefix);
  n += _mi_format_v(line + n, sizeof(line) - 1 - n, fmt, args);
  if (line[n - 1] == '\n') n--;
  message_make_printable(line, n);
  line[n++] = '\n';
  line[n] = 0;
  message_postponed_t* postponed = message_postpone();
  if (postponed != NULL) message_postpone_line(postponed, line);
  else _mi_message_write(NULL, NULL, line);
}

void _mi_message_raw(mi_output_fun* out, void* arg, const char* fmt, ...) {
  char    text[MESSAGE_MAX];
  va_list args;
  va_start(args, fmt);
  _mi_format_v(text, sizeof(text), fmt, args);
  va_end(args);
  _mi_message_write(out, arg, text);
}

void _mi_message_print(long level, const char* fmt, ...) {
  if (level > 0 && _mi_option_get_fast(mi_option_verbose) < level) return;
  va_list args;
  va_start(args, fmt);
  message_vwrite("mimalloc: ", fmt, args);
  va_end(args);
}

// ---- warnings and errors --------------------------------------------------------------------------------------------

static mi_atomic(long) message_n_warnings;
static mi_atomic(long) message_n_errors;

static bool message_may_show(mi_option_t max_option, mi_atomic(long)* n_shown) {
  if (_mi_option_get_fast(mi_option_verbose) > 0) return true;
  if (_mi_option_get_fast(mi_option_show_errors) == 0) return false;
  long max = _mi_option_get_fast(max_option);
  return max < 0 || (mi_load_relaxed(n_shown) < max && mi_fetch_add_relaxed(n_shown, 1) < max);
}

static void message_vwrite_fault(const char* word, const char* fmt, va_list args) {
  char prefix[64];
  if (message_is_main_thread()) _mi_format(prefix, sizeof(prefix), "mimalloc: %s: ", word);
  else _mi_format(prefix, sizeof(prefix), "mimalloc: %s: thread %p: ", word, (void*)message_thread_id());
  message_vwrite(prefix, fmt, args);
}

void _mi_message_warning(const char* fmt, ...) {
  if (!message_may_show(mi_option_max_warnings, &message_n_warnings)) return;
  va_list args;
  va_start(args, fmt);
  message_vwrite_fault("warning", fmt, args);
  va_end(args);
}

void mi_register_error(mi_error_fun* fun, void* arg) {
  _mi_hook_set(MI_HOOK_ERROR, (mi_hook_fun_t)fun, arg);
}

// What an error in the use of blocks is called in the reports of tools; NULL: another error.
static const char* message_kind(int err) {
  if (err == EAGAIN) return "SUMMARY: mimalloc: double-free";
  if (err == EINVAL) return "SUMMARY: mimalloc: invalid pointer";
  return err == EFAULT ? "SUMMARY: mimalloc: corrupted memory" : NULL;
}

// Memory that was overwritten, or a free of what is no block in use, is somebody's attack or somebody's bug; builds that
// look for either stop.
static bool message_is_fatal(int err) {
  if (message_kind(err) != NULL) return MI_SECURE > 0 || MI_DEBUG > 0 || MI_TRACK_ASAN;
  return MI_XMALLOC > 0 && (err == ENOMEM || err == EOVERFLOW);
}

static bool message_is_end(int err) {
  void* arg;
  return _mi_hook_get(MI_HOOK_ERROR, &arg) == NULL && message_is_fatal(err);
}

static void message_act(int err) {
  void*         arg;
  mi_error_fun* fun = (mi_error_fun*)_mi_hook_get(MI_HOOK_ERROR, &arg);
  if (message_is_end(err)) _mi_prim_abort();
  if (fun == NULL || mi_local(message_thread).is_in_error) return;
  mi_local(message_thread).is_in_error = true;
  fun(err, arg);
  mi_local(message_thread).is_in_error = false;
}

void _mi_message_error(int err, const char* fmt, ...) {
  int saved = errno;
  MI_PROBE2(error, err, fmt);
  bool is_end = message_is_end(err);
  if (message_may_show(mi_option_max_errors, &message_n_errors) || is_end) {
    va_list args;
    va_start(args, fmt);
    message_vwrite_fault("error", fmt, args);
    va_end(args);
  }
  if (MI_TRACK && is_end && message_kind(err) != NULL) mi_track_report(message_kind(err));
  message_postponed_t* postponed = message_postpone();
  if (postponed == NULL) message_act(err);
  else if (postponed->err == 0) postponed->err = err;
  errno = saved;
}

static void message_say_postponed(void) {
  int                  saved = errno;
  message_postponed_t* postponed = message_find_postponed(false);
  if (postponed == NULL) return; // there was no room
  int err = postponed->err;
  if (postponed->length > 0) _mi_message_write(NULL, NULL, postponed->text);
  postponed->err = 0;
  postponed->length = 0;
  mi_store_release(&postponed->thread, (uintptr_t)0);
  if (err != 0) message_act(err);
  errno = saved;
}

void _mi_message_after_fork(void) {
  message_earlier[message_earlier_length] = 0; // a thread that the child does not have may have been adding a line
  message_earlier_release();
  message_forget_postponed();
  _mi_hook_after_fork();
  _mi_message_init();
}
