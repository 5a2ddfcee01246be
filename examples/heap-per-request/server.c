// A server that gives each request a heap of its own and destroys the heap when the response is sent.  Nothing in the handler needs
// to free, an early return leaks nothing, and the time to free does not depend on the number of blocks.
//
// Making and destroying a heap takes constant time plus the pages that the request used, so a request may be small.
//
// Build and run:
//   cc -O2 server.c $(pkg-config --cflags --libs mimalloc) -pthread -o server
//   ./server
// Prints:
//   20000 requests by 2 threads, 1000 of them broken off
//   memory of the process after the first requests and at the end is about the same: yes
#include <mimalloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define THREADS  2
#define REQUESTS 10000 // of each thread

typedef struct header_s {
  struct header_s* next;
  char*            name;
  char*            value;
} header_t;

typedef struct request_s {
  mi_heap_t* heap; // everything below lies in it
  header_t*  headers;
  char*      body;
} request_t;

// Adds a header.  Returns false if there is no memory; whoever destroys the heap cleans up.
static bool request_add(request_t* request, const char* name, const char* value) {
  header_t* header = (header_t*)mi_heap_malloc(request->heap, sizeof(header_t));
  if (header == NULL) return false;
  header->name = mi_heap_strdup(request->heap, name);
  header->value = mi_heap_strdup(request->heap, value);
  header->next = request->headers;
  request->headers = header;
  return header->name != NULL && header->value != NULL;
}

// Returns whether the request was answered.  It frees nothing, on no path.
static bool handle(mi_heap_t* heap, int number) {
  request_t* request = (request_t*)mi_heap_zalloc(heap, sizeof(request_t));
  if (request == NULL) return false;
  request->heap = heap;
  char value[32];
  for (int i = 0; i < 20; i++) {
    snprintf(value, sizeof(value), "value %d of request %d", i, number);
    if (!request_add(request, "name", value)) return false;
  }
  if (number % 20 == 0) return false; // the client has gone away
  size_t size = (size_t)(1000 + number % 50 * 1000);
  request->body = (char*)mi_heap_malloc(heap, size);
  if (request->body == NULL) return false;
  memset(request->body, 'x', size);
  return true;
}

static void* serve(void* arg) {
  int* broken_off = (int*)arg;
  for (int i = 0; i < REQUESTS; i++) {
    mi_heap_t* heap = mi_heap_new();
    if (heap == NULL) return NULL;
    if (!handle(heap, i)) (*broken_off)++;
    mi_heap_destroy(heap); // all blocks of the request, whatever happened to it
  }
  return NULL;
}

static size_t memory_in_use(void) {
  size_t commit = 0;
  mi_process_info(NULL, NULL, NULL, NULL, NULL, &commit, NULL, NULL);
  return commit;
}

// Runs the threads, and returns how many requests were broken off.
static int serve_all(void) {
  pthread_t threads[THREADS];
  int       broken_off[THREADS] = {0}, sum = 0;
  for (int i = 0; i < THREADS; i++) {
    if (pthread_create(&threads[i], NULL, &serve, &broken_off[i]) != 0) return -1;
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    sum += broken_off[i];
  }
  return sum;
}

int main(void) {
  serve_all();
  size_t first = memory_in_use();
  int    broken_off = serve_all();
  size_t last = memory_in_use();
  printf("%d requests by %d threads, %d of them broken off\n", THREADS * REQUESTS, THREADS, broken_off);
  printf("memory of the process after the first requests and at the end is about the same: %s\n",
         last < first + 8 * 1024 * 1024 ? "yes" : "no");
  return 0;
}
