// An embedder with an event loop of its own that returns memory from it, without a thread of the library.
//
// Programs that contain the library (object or static), and those with MIMALLOC_BACKGROUND_THREAD=0, have no such thread.  There
// the memory that a sleeping program holds stays, because nothing calls the allocator.  A loop has the right moment: before it
// waits.  It does two things.
//
//   heartbeat   every 100 ms while there is work: mi_collect(false).  It empties the caches of this thread, and the periodic round
//               of the library also takes, step by step, what threads hold that sleep.  It is cheap.
//   idle        once, when nothing has happened for IDLE_MS: mi_collect(true).  All free memory returns to the system.
//
// The same hook lets the program free step by step: mi_register_deferred_free has a function called with each mi_collect.
//
// Build and run:
//   cc -O2 loop.c $(pkg-config --variable=objectdir mimalloc)/mimalloc.o $(pkg-config --cflags mimalloc) -pthread -o loop
//   ./loop
// Prints:
//   threads: N, none of them is the library's
//   after the burst: the process has more than 58 MiB
//   while the loop waits: less than 20 MiB
//   heartbeats: some; deferred frees done: all
#include <mimalloc.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define HEARTBEAT_MS 100
#define IDLE_MS      500
#define BLOCKS       60000 // of 1 KiB, in each of two threads

// ---- what the program does ---------------------------------------------------------------------------------------------

static void* blocks[BLOCKS];

static void use_much_memory(void) {
  for (int i = 0; i < BLOCKS; i++) {
    blocks[i] = malloc(1024);
    if (blocks[i] != NULL) memset(blocks[i], i, 1024);
  }
}

// Large data that is freed little by little, so that no event waits for it.
static void* later[1000];
static int   n_later;

static void free_some_later(bool force, unsigned long long heartbeat, void* arg) {
  (void)heartbeat;
  (void)arg;
  for (int i = 0; n_later > 0 && (force || i < 100); i++) free(later[--n_later]);
}

// A worker that has allocated and freed, and then sleeps for long.
static pthread_barrier_t worker_sleeps;

static void* work(void* arg) {
  void** own = (void**)malloc(BLOCKS * sizeof(void*));
  (void)arg;
  if (own == NULL) return NULL;
  for (int i = 0; i < BLOCKS; i++) {
    own[i] = malloc(1024);
    if (own[i] != NULL) memset(own[i], i, 1024);
  }
  for (int i = 0; i < BLOCKS; i++) free(own[i]);
  free(own);
  pthread_barrier_wait(&worker_sleeps);
  pthread_barrier_wait(&worker_sleeps); // sleeps here
  return NULL;
}

// ---- the loop -----------------------------------------------------------------------------------------------------------

typedef struct loop_s {
  int       fd;         // where events come from
  long long last_event; // ms
  bool      is_idle;    // all free memory has been returned since the last event
  int       heartbeats;
} loop_t;

static long long now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000ll + t.tv_nsec / 1000000;
}

// One turn.  Returns false at the end of the events.
static bool loop_turn(loop_t* loop) {
  struct pollfd p = {.fd = loop->fd, .events = POLLIN};
  // Once idle, it waits without a timeout: a program that has nothing to do wakes nobody up.
  int  ready = poll(&p, 1, loop->is_idle ? -1 : HEARTBEAT_MS);
  char event;
  if (ready > 0) {
    if (read(loop->fd, &event, 1) != 1) return false;
    loop->last_event = now_ms();
    loop->is_idle = false;
    if (event == 'f') {
      for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
    }
    return true;
  }
  bool is_idle = now_ms() - loop->last_event >= IDLE_MS;
  mi_collect(is_idle); // the heartbeat, or the last one
  loop->heartbeats++;
  loop->is_idle = is_idle;
  return true;
}

// ---- what it shows --------------------------------------------------------------------------------------------------------

// A line of /proc/self/status that has a number.
static long status(const char* name) {
  char  line[256];
  long  value = -1;
  FILE* file = fopen("/proc/self/status", "r");
  while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
    if (strncmp(line, name, strlen(name)) == 0) value = strtol(line + strlen(name), NULL, 10);
  }
  if (file != NULL) fclose(file);
  return value;
}

int main(void) {
  int       fds[2];
  pthread_t worker;
  mi_register_deferred_free(&free_some_later, NULL);
  pthread_barrier_init(&worker_sleeps, NULL, 2);
  if (pipe(fds) != 0 || pthread_create(&worker, NULL, &work, NULL) != 0) return 1;
  use_much_memory();
  while (n_later < 1000) later[n_later++] = malloc(1000);
  pthread_barrier_wait(&worker_sleeps);
  long threads = status("Threads:");
  printf("threads: %ld, %s\n", threads, threads == 2 ? "none of them is the library's" : "one more than the program's");
  printf("after the burst: the process has %s\n", status("VmRSS:") > 58 * 1024 ? "more than 58 MiB" : "little");

  loop_t loop = {.fd = fds[0], .last_event = now_ms()};
  if (write(fds[1], "f", 1) != 1) return 1; // the event that frees
  while (!loop.is_idle && loop_turn(&loop)) {
  }
  printf("while the loop waits: %s\n", status("VmRSS:") < 20 * 1024 ? "less than 20 MiB" : "too much");
  printf("heartbeats: %s; deferred frees done: %s\n", loop.heartbeats > 2 ? "some" : "too few", n_later == 0 ? "all" : "not all");
  pthread_barrier_wait(&worker_sleeps);
  pthread_join(worker, NULL);
  return 0;
}
