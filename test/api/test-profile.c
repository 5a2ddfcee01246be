// Proves: the functions of mimalloc-profile.h do what the header says, also with the least and with nothing to tell.
#include "../check.h"
#include <errno.h>
#include <mimalloc-profile.h>
#include <stdio.h>
#include "base/mode.h"

static size_t n_written, n_lines;

static int count_bytes(const void* data, size_t size, void* arg) {
  (void)data;
  n_written += size;
  return arg == NULL ? 0 : *(int*)arg;
}

static void count_line(const char* text, void* arg) {
  (void)text;
  (void)arg;
  n_lines++;
}

int main(void) {
  enum { n_blocks = 1000 };
  static void*      blocks[n_blocks];
  mi_profile_info_t info;
  int               full = ENOSPC;
  CHECK_EQ(mi_profile_dump(NULL), EINVAL);
  CHECK_EQ(mi_profile_dump_to(&count_bytes, NULL), EINVAL);
  mi_profile_stop(); // it was not started
  mi_profile_get_info(&info);
  CHECK(info.rate == 0 && info.samples == 0 && info.live == 0 && info.stacks == 0);
  if (MI_TRACK) return check_result();
  CHECK_EQ(mi_profile_start(0), 0);
  mi_profile_get_info(&info);
  CHECK_EQ(info.rate, 512 * 1024);
  CHECK_EQ(mi_profile_start(1), 0); // all
  for (size_t i = 0; i < n_blocks; i++) blocks[i] = mi_malloc(1000 + i);
  mi_profile_get_info(&info);
  CHECK_FOR(info.rate == 1 && info.live >= n_blocks - 64, "%zu in use", info.live);
  CHECK_EQ(mi_profile_dump_to(&count_bytes, NULL), 0);
  CHECK(n_written > 100);
  CHECK_EQ(mi_profile_dump_to(&count_bytes, &full), ENOSPC);
  mi_profile_print_leaks(0, &count_line, NULL);
  CHECK_EQ(n_lines, 0);
  mi_profile_print_leaks(1, &count_line, NULL);
  CHECK(n_lines >= 1);
  for (size_t i = 0; i < n_blocks; i++) mi_free(blocks[i]);
  mi_profile_get_info(&info);
  CHECK_FOR(info.live < 64, "%zu in use", info.live);
  mi_profile_stop();
  return check_result();
}
