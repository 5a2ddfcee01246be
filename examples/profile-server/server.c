// A server whose heap is profiled while it runs: which call stacks have the memory.  The profile is sampled, one sample for 64 KiB
// here, so it may run in production.  `go tool pprof` and others read the file.
//
// A server that exists needs no change.  Started with MIMALLOC_PROFILE_SIGNAL=12, it starts a profile, or writes one, when it gets that
// signal: kill -12 PID.
//
// The report names modules and offsets; addr2line, or pprof, turns them into functions and lines.
//
// Build and run:
//   cc -g -O1 server.c $(pkg-config --cflags --libs mimalloc) -o server
//   ./server | tee report | head -2
//   addr2line -f -e server $(sed -n 's/.*server+//p' report | head -1) | head -1
//   test -s server.pb && echo server.pb is there
// Prints:
//   1000 requests; samples were taken: yes
//   in use: about N bytes in N blocks, allocated by
//   session_begin
//   server.pb is there
#include <mimalloc-profile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct session_s {
  struct session_s* next;
  char              data[20000];
} session_t;

static session_t* sessions;

// The error: a session is kept for each client, for ever.
__attribute__((noinline)) void session_begin(void) {
  session_t* session = (session_t*)malloc(sizeof(session_t));
  if (session == NULL) return;
  memset(session->data, 0, sizeof(session->data));
  session->next = sessions;
  sessions = session;
}

__attribute__((noinline)) void request_handle(int number) {
  void* body = malloc(50000);
  if (body == NULL) return;
  memset(body, number, 50000);
  session_begin();
  free(body);
}

// Receives the report in parts.
static void to_stdout(const char* text, void* arg) {
  (void)arg;
  fputs(text, stdout);
}

int main(void) {
  if (mi_profile_start(64 * 1024) != 0) return 1;
  for (int i = 0; i < 1000; i++) request_handle(i);

  mi_profile_info_t info;
  mi_profile_get_info(&info);
  printf("1000 requests; samples were taken: %s\n", info.samples > 100 ? "yes" : "no");

  // As text, the stacks with the most memory in use; as a file, everything.
  mi_profile_print_leaks(5, &to_stdout, NULL);
  unlink("server.pb");
  return mi_profile_dump("server.pb") == 0 ? 0 : 1;
}
