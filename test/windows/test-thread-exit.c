// The exit of a thread is noticed, whoever started it and however it ends: the number of live threads goes back, and memory
// stays bounded after thousands of threads that allocate and end.
#include <process.h>
#include <windows.h>

#include <mimalloc-stats.h>
#include <mimalloc.h>

#include "../check.h"
#include "../modes/support.h"

enum { n_rounds = 250, n_each = 8, n_blocks = 200 };

// About 200 KiB, of which half stays: the other half is freed by the main thread.
typedef struct task_s {
  void* blocks[n_blocks];
} task_t;

static task_t tasks[n_each];

static void work(task_t* task) {
  for (size_t i = 0; i < n_blocks; i++) {
    task->blocks[i] = mi_malloc(64 + 9 * i);
    memset(task->blocks[i], 1, 64);
  }
  for (size_t i = 0; i < n_blocks; i += 2) mi_free(task->blocks[i]);
}

static void finish(task_t* task) {
  for (size_t i = 1; i < n_blocks; i += 2) mi_free(task->blocks[i]);
}

static int64_t live_threads(void) {
  mi_stats_t stats;
  memset(&stats, 0, sizeof(stats));
  stats.size = sizeof(stats);
  stats.version = MI_STAT_VERSION;
  return mi_stats_get(&stats) ? stats.threads.current : -1;
}

static int64_t all_threads(void) {
  mi_stats_t stats;
  memset(&stats, 0, sizeof(stats));
  stats.size = sizeof(stats);
  stats.version = MI_STAT_VERSION;
  return mi_stats_get(&stats) ? stats.threads.total : -1;
}

// ---- ways to start and to end -------------------------------------------------------------------------------------------

static DWORD WINAPI run_and_return(void* task) {
  work((task_t*)task);
  return 0;
}

static DWORD WINAPI run_and_exit(void* task) {
  work((task_t*)task);
  ExitThread(0);
}

static unsigned __stdcall run_of_runtime(void* task) {
  work((task_t*)task);
  return 0;
}

static unsigned __stdcall run_and_end_of_runtime(void* task) {
  work((task_t*)task);
  _endthreadex(0);
  return 0;
}

// A thread that becomes a fiber, and runs another one, which allocates, and is deleted before the thread ends.
static void* main_fiber;

static VOID CALLBACK run_fiber(void* task) {
  work((task_t*)task);
  SwitchToFiber(main_fiber);
}

static DWORD WINAPI run_with_fiber(void* task) {
  main_fiber = ConvertThreadToFiber(NULL);
  void* fiber = CreateFiber(0, &run_fiber, task);
  SwitchToFiber(fiber);
  DeleteFiber(fiber);
  void* p = mi_malloc(100); // the thread has not ended
  CHECK(p != NULL && mi_is_in_heap_region(p));
  mi_free(p);
  ConvertFiberToThread();
  return 0;
}

typedef enum way_e { CREATE_THREAD, EXIT_THREAD, BEGIN_THREAD, END_THREAD, FIBER, N_WAYS } way_t;

static HANDLE start(way_t way, task_t* task) {
  switch (way) {
    case CREATE_THREAD: return CreateThread(NULL, 0, &run_and_return, task, 0, NULL);
    case EXIT_THREAD: return CreateThread(NULL, 0, &run_and_exit, task, 0, NULL);
    case BEGIN_THREAD: return (HANDLE)_beginthreadex(NULL, 0, &run_of_runtime, task, 0, NULL);
    case END_THREAD: return (HANDLE)_beginthreadex(NULL, 0, &run_and_end_of_runtime, task, 0, NULL);
    default: return CreateThread(NULL, 0, &run_with_fiber, task, 0, NULL);
  }
}

static void run_rounds(way_t way, size_t rounds, size_t n_at_once) {
  for (size_t i = 0; i < rounds; i++) {
    HANDLE threads[n_each];
    for (size_t k = 0; k < n_at_once; k++) threads[k] = start(way, &tasks[k]);
    for (size_t k = 0; k < n_at_once; k++) {
      CHECK_EQ(WaitForSingleObject(threads[k], 60000), WAIT_OBJECT_0);
      CloseHandle(threads[k]);
      finish(&tasks[k]);
    }
  }
}

// `before`: resident when few threads had run.  Memory that is freed late may hide what a single way leaves behind.
static void check_way(way_t way, size_t rounds, size_t n_at_once, size_t before) {
  int64_t live = live_threads(), all = all_threads();
  run_rounds(way, rounds, n_at_once);
  CHECK_EQ(live_threads(), live);
  CHECK_EQ(all_threads(), all + (int64_t)(rounds * n_at_once));
  CHECK(rss_within("resident after many threads", rss_now(), before + 8 * MiB));
}

// ---- the pool of the system ---------------------------------------------------------------------------------------------

static volatile LONG n_done;

static VOID CALLBACK run_in_pool(PTP_CALLBACK_INSTANCE instance, void* task, PTP_WORK work_item) {
  task_t mine;
  (void)instance, (void)task, (void)work_item;
  work(&mine);
  finish(&mine);
  InterlockedIncrement(&n_done);
}

// Its threads end some time after the pool is closed.
static void check_pool(void) {
  int64_t             live = live_threads();
  TP_CALLBACK_ENVIRON environment;
  PTP_POOL            pool = CreateThreadpool(NULL);
  CHECK(pool != NULL);
  if (pool == NULL) return;
  SetThreadpoolThreadMaximum(pool, 4);
  InitializeThreadpoolEnvironment(&environment);
  SetThreadpoolCallbackPool(&environment, pool);
  PTP_WORK item = CreateThreadpoolWork(&run_in_pool, NULL, &environment);
  for (int i = 0; i < 500; i++) SubmitThreadpoolWork(item);
  WaitForThreadpoolWorkCallbacks(item, FALSE);
  CHECK_EQ(n_done, 500);
  CHECK(live_threads() > live);
  CloseThreadpoolWork(item);
  CloseThreadpool(pool);
  for (int i = 0; i < 600 && live_threads() > live; i++) Sleep(100);
  CHECK_EQ(live_threads(), live);
}

// ---- the last error -----------------------------------------------------------------------------------------------------

static DWORD WINAPI check_last_error(void* arg) {
  static void* blocks[100];
  (void)arg;
  errno = 33;
  SetLastError(4711); // the first malloc of a thread
  for (size_t i = 0; i < COUNT_OF(blocks); i++) {
    blocks[i] = mi_malloc(i < 50 ? i * 1000 : i * MiB);
    CHECK_FOR(GetLastError() == 4711, "malloc %zu: %lu", i, GetLastError());
  }
  for (size_t i = 0; i < COUNT_OF(blocks); i++) blocks[i] = mi_realloc(blocks[i], i < 50 ? i * MiB / 8 : i * 1000);
  CHECK_EQ(GetLastError(), 4711);
  for (size_t i = 0; i < COUNT_OF(blocks); i++) mi_free(blocks[i]);
  CHECK_EQ(GetLastError(), 4711);
  mi_collect(true);
  CHECK_EQ(GetLastError(), 4711);
  void* p = mi_malloc_aligned(100 * MiB, 64 * MiB);
  CHECK(p != NULL && is_aligned(p, 64 * MiB));
  mi_free(p);
  CHECK_EQ(GetLastError(), 4711);
  CHECK_EQ(errno, 33);
  return 0;
}

// ---- what this machine may not have ---------------------------------------------------------------------------------------

// Without the right to lock memory an arena is of ordinary memory.
static void check_large_pages(void) {
  mi_arena_id_t arena;
  CHECK_EQ(mi_reserve_os_memory_ex(64 * MiB, true, true, true, &arena), 0);
  mi_heap_t* heap = mi_heap_new_in_arena(arena);
  CHECK(heap != NULL);
  char* p = (char*)mi_heap_zalloc(heap, 20 * MiB);
  CHECK(p != NULL && is_zero(p, 0, 20 * MiB));
  if (p != NULL) memset(p, 1, 20 * MiB);
  mi_free(p);
  mi_heap_destroy(heap);
}

static void check_system(void) {
  size_t elapsed, user, system, rss, peak_rss, commit, peak_commit, faults;
  char*  p = (char*)mi_malloc(50 * MiB);
  memset(p, 1, 50 * MiB);
  mi_process_info(&elapsed, &user, &system, &rss, &peak_rss, &commit, &peak_commit, &faults);
  CHECK_FOR(rss >= 50 * MiB && peak_rss >= rss, "%zu, %zu", rss, peak_rss);
  CHECK_FOR(elapsed > 0 && elapsed < 600000, "%zu", elapsed);
  mi_free(p);
  wchar_t* value = NULL;
  size_t   n = 0;
  _wputenv(L"MI_TEST_WIDE=v\u00e4lue");
  CHECK_EQ(mi_wdupenv_s(&value, &n, L"MI_TEST_WIDE"), 0);
  CHECK(value != NULL && n == 6 && wcscmp(value, L"v\u00e4lue") == 0);
  mi_free(value);
}

int main(void) {
  static const char* names[] = {"CreateThread", "ExitThread", "_beginthreadex", "_endthreadex", "a fiber"};
  watchdog(250);
  run_rounds(CREATE_THREAD, n_rounds / 10, n_each); // as much memory as so many threads need at once
  size_t before = rss_now();
  for (int way = 0; way < N_WAYS; way++) {
    printf("%s\n", names[way]);
    check_way((way_t)way, way == FIBER ? 200 : n_rounds, way == FIBER ? 1 : n_each, before);
  }
  check_pool();
  HANDLE thread = CreateThread(NULL, 0, &check_last_error, NULL, 0, NULL);
  WaitForSingleObject(thread, INFINITE);
  CloseHandle(thread);
  check_large_pages();
  check_system();
  return check_result();
}
