// Subprocesses.  Layer: api.
#include "subproc.h"

#include <errno.h>

#include "../heap/subproc.h"
#include "../heap/fork.h"
#include "../heap/thread.h"
#include "../support/message.h"
#include "alloc.h"

// At level 2 an id is a pointer, and NULL the main subprocess; at level 3 it is a struct with a pointer.
#if MI_API_LEVEL < 3

static mi_subproc_id_t subproc_id(mi_subproc_t* subproc) {
  return subproc == &_mi_heap_subproc_main ? NULL : subproc;
}

  #define SUBPROC_POINTER(id) (id)

#else

static mi_subproc_id_t subproc_id(mi_subproc_t* subproc) {
  mi_subproc_id_t id = {subproc};
  return id;
}

  #define SUBPROC_POINTER(id) ((id)._mi_subproc_id)

#endif

mi_subproc_t* _mi_subproc_of_id(mi_subproc_id_t id) {
  return SUBPROC_POINTER(id) == NULL ? &_mi_heap_subproc_main : (mi_subproc_t*)SUBPROC_POINTER(id);
}

mi_subproc_id_t mi_subproc_main(void) {
  return subproc_id(&_mi_heap_subproc_main);
}

mi_subproc_id_t mi_subproc_current(void) {
  return subproc_id(_mi_thread_subproc());
}

mi_subproc_id_t mi_subproc_new(void) {
  mi_subproc_t* subproc = _mi_subproc_new();
  return subproc_id(subproc != NULL ? subproc : (mi_subproc_t*)_mi_alloc_failed(sizeof(*subproc)));
}

void mi_subproc_add_current_thread(mi_subproc_id_t subproc) {
  mi_subproc_t* wanted = _mi_subproc_of_id(subproc);
  if (wanted == _mi_thread_subproc()) return;
  int err = _mi_thread_join(wanted);
  if (err == ENOMEM) _mi_message_error(ENOMEM, "a thread cannot be added to a subprocess: out of memory\n");
  else if (err == ENOENT) _mi_message_warning("a thread cannot be added to a subprocess that has ended\n");
  else if (err != 0) _mi_message_warning("a thread can be added to a subprocess once, from the main one\n");
}

static void subproc_end(mi_subproc_id_t id, bool destroy) {
  mi_subproc_t* subproc = _mi_subproc_of_id(id);
  if (subproc == &_mi_heap_subproc_main) return;
  _mi_fork_adopt_orphans();
  if (!_mi_subproc_end(subproc, destroy)) {
    _mi_message_warning(mi_load_relaxed(&subproc->n_threads) > 0
                            ? "a subprocess cannot end while it has threads\n"
                            : "a subprocess is not deleted while there is memory in use\n");
  }
}

void mi_subproc_delete(mi_subproc_id_t subproc) {
  subproc_end(subproc, false);
}

void mi_subproc_destroy(mi_subproc_id_t subproc) {
  subproc_end(subproc, true);
}

bool mi_subproc_visit_heaps(mi_subproc_id_t subproc, mi_heap_visit_fun* visitor, void* arg) {
  return visitor != NULL && _mi_heap_visit(_mi_subproc_of_id(subproc), visitor, arg);
}
