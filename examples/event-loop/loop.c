// An embedder with an event loop of its own that returns memory from it, without a thread of the library.
//
// Programs that contain the library (object or static), and those with MIMALLOC_BACKGROUND_THREAD=0, have no such thread.  There
// frees return free memory themselves, except an allowance of 1 to 40 MiB (more if its use went up and down), and what sleeping
// threads hold stays until another one works.  A loop knows the moment at which the rest should go: before it waits.  It does two things.
//
//   heartbeat   every 100 ms while there is work: mi_collect(false).  It empties the caches of this thread, and makes the periodic
//               rounds that take from threads that sleep.
//   idle        once, when nothing has happened for IDLE_MS: mi_collect(true).  All free memory returns to the system.
//
// Build and run:
//   cc -O2 loop.c $(pkg-config --variable=objectdir mimalloc)/mimalloc.o $(pkg-config --cflags mimalloc) -pthread -o loop
//   ./loop
// Prints:
//   threads: N, none of them is the library's
//   after the burst, and the frees: more than 40 MiB
//   when the loop waits: less than 8 MiB
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
#define IDLE_MS      800
#define BLOCKS       60000 // of 1 KiB

// ---- what the program does -----------------------------------------------------------------------------------------------

static void*             blocks[BLOCKS];
static pthread_barrier_t worker_sleeps;

// A worker has a burst of work, frees every second block, and then sleeps for long.
static void* work(void* arg) {
  (void)arg;
  for (int i = 0; i < BLOCKS; i++) {
    blocks[i] = malloc(1024);
    if (blocks[i] != NULL) memset(blocks[i], i, 1024);
  }
  for (int i = 0; i < BLOCKS; i += 2) free(blocks[i]);
  pthread_barrier_wait(&worker_sleeps);
  pthread_barrier_wait(&worker_sleeps); // here
  return NULL;
}

// The loop frees the rest: blocks of a thread that sleeps.
static void handle_event(void) {
  for (int i = 1; i < BLOCKS; i += 2) free(blocks[i]);
}

// ---- the loop -----------------------------------------------------------------------------------------------------------

typedef struct loop_s {
  int       fd;         // where events come from
  long long last_event; // ms
  bool      is_idle;    // all free memory has been returned since the last event
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
    handle_event();
    return true;
  }
  bool is_idle = now_ms() - loop->last_event >= IDLE_MS;
  mi_collect(is_idle); // the heartbeat, or the last one
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
  pthread_barrier_init(&worker_sleeps, NULL, 2);
  if (pipe(fds) != 0 || pthread_create(&worker, NULL, &work, NULL) != 0) return 1;
  pthread_barrier_wait(&worker_sleeps);
  long threads = status("Threads:");
  printf("threads: %ld, %s\n", threads, threads == 2 ? "none of them is the library's" : "not only those of the program");

  loop_t loop = {.fd = fds[0], .last_event = now_ms()};
  if (write(fds[1], "e", 1) != 1 || !loop_turn(&loop)) return 1;
  printf("after the burst, and the frees: %s\n", status("VmRSS:") > 40 * 1024 ? "more than 40 MiB" : "little");
  while (!loop.is_idle && loop_turn(&loop)) {
  }
  printf("when the loop waits: %s\n", status("VmRSS:") < 8 * 1024 ? "less than 8 MiB" : "too much");
  pthread_barrier_wait(&worker_sleeps);
  pthread_join(worker, NULL);
  return 0;
}
