// Proves: the limit of a container is the least of those of the process's control group and of all above it, in both versions,
// wherever they are mounted; what is missing, wrong or too long is ignored.
//
// The files are the test's own.
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "../check.h"
#include "../modes/support.h"
#include "prim/linux_container.h"

#if !MI_SYSTEM_LINUX
int main(void) {
  test_skip("everything", "there are no control groups");
  return skip_code;
}
#else

static char root[64] = "/tmp/mimalloc-test-container-XXXXXX";

static const char mount_v2[] =
    "24 23 0:22 / /proc rw - proc proc rw\n"
    "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:9 master:1 - cgroup2 cgroup2 rw,nsdelegate\n";
static const char mount_v1[] = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
                               "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
                               "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n";

static void put(const char* path, const char* text) {
  char full[4096];
  snprintf(full, sizeof(full), "%s%s", root, path);
  for (char* p = full + strlen(root) + 1; (p = strchr(p, '/')) != NULL; p++) {
    *p = 0;
    mkdir(full, 0700);
    *p = '/';
  }
  FILE* file = fopen(full, "w");
  CHECK_FOR(file != NULL && fputs(text, file) >= 0, "%s", full);
  if (file != NULL) fclose(file);
}

static void clear(void) {
  char command[256];
  snprintf(command, sizeof(command), "rm -rf '%s'", root);
  CHECK_EQ(system(command), 0);
  CHECK_EQ(mkdir(root, 0700), 0);
}

static void start(const char* group, const char* mounts) {
  clear();
  put("/proc/self/cgroup", group);
  put("/proc/self/mountinfo", mounts);
}

static size_t limit(void) {
  errno = 123;
  size_t found = _mi_prim_container_limit();
  CHECK_EQ(errno, 123);
  return found;
}

static void check_v2(void) {
  start("0::/\n", mount_v2);
  CHECK_EQ(limit(), 0); // the root of the machine has no files
  put("/sys/fs/cgroup/memory.max", "67108864\n");
  CHECK_EQ(limit(), 64 * MiB); // a namespace of its own
  start("0::/a/b\n", mount_v2);
  put("/sys/fs/cgroup/a/b/memory.max", "max\n");
  put("/sys/fs/cgroup/a/b/memory.high", "max\n");
  put("/sys/fs/cgroup/a/memory.max", "max\n");
  CHECK_EQ(limit(), 0);
  put("/sys/fs/cgroup/a/memory.max", "134217728\n");
  CHECK_EQ(limit(), 128 * MiB); // of the group above
  put("/sys/fs/cgroup/a/b/memory.high", "100663296\n");
  CHECK_EQ(limit(), 96 * MiB);
  put("/sys/fs/cgroup/a/b/memory.max", "67108864\n");
  CHECK_EQ(limit(), 64 * MiB);
}

static void check_v1(void) {
  start("4:cpuset,memory:/x/y\n3:cpu:/other\n0::/\n", mount_v1);
  CHECK_EQ(limit(), 0);
  put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"); // none
  put("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "9223372036854771712\n");
  put("/sys/fs/cgroup/memory/x/y/memory.limit_in_bytes", "9223372036854771712\n");
  CHECK_EQ(limit(), 0);
  put("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "33554432\n");
  CHECK_EQ(limit(), 32 * MiB);
  put("/sys/fs/cgroup/memory/x/y/memory.limit_in_bytes", "16777216\n");
  CHECK_EQ(limit(), 16 * MiB);
  // Both versions at once: the least.
  put("/proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
                              "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n");
  put("/sys/fs/cgroup/unified/memory.max", "8388608\n");
  CHECK_EQ(limit(), 8 * MiB);
}

// A part of the hierarchy is mounted, as in containers without a namespace for it.
static void check_parts(void) {
  start("0::/docker/abc/sub\n", "31 23 0:28 /docker/abc /mnt/c\\040g rw - cgroup2 cgroup2 rw\n");
  put("/mnt/c g/memory.max", "50331648\n");
  put("/mnt/c g/sub/memory.max", "max\n");
  CHECK_EQ(limit(), 48 * MiB);
  put("/mnt/c g/sub/memory.max", "1048576\n");
  CHECK_EQ(limit(), MiB);
  // The group is not within what is mounted: its top is what can be seen.
  put("/proc/self/cgroup", "0::/docker/abcd\n");
  CHECK_EQ(limit(), 48 * MiB);
  put("/proc/self/cgroup", "0::/../other\n");
  put("/proc/self/mountinfo", "31 23 0:28 / /mnt/c\\040g rw - cgroup2 cgroup2 rw\n");
  CHECK_EQ(limit(), 48 * MiB);
}

static void check_wrong(void) {
  static const char* const values[] = {
      "", "\n", "-1\n", "abc\n", "67108864x\n", "0\n", "1e6\n", " 5\n", "0x10\n", "max", "99999999999999999999999\n"};
  static char long_line[20000];
  memset(long_line, '7', sizeof(long_line) - 1);
  start("0::/a\n", mount_v2);
  for (size_t i = 0; i < COUNT_OF(values); i++) {
    put("/sys/fs/cgroup/a/memory.max", values[i]);
    CHECK_FOR(limit() == 0, "'%s'", values[i]);
  }
  put("/sys/fs/cgroup/a/memory.max", long_line);
  CHECK_EQ(limit(), 0);
  put("/sys/fs/cgroup/a/memory.max", "1048576\n");
  static const char* const groups[] = {"", "\n", "0:\n", "0::\n", "0::a\n", "garbage\n", "::::\n", "1:memory\n"};
  for (size_t i = 0; i < COUNT_OF(groups); i++) {
    put("/proc/self/cgroup", groups[i]);
    CHECK_FOR(limit() == 0, "group '%s'", groups[i]);
  }
  memcpy(long_line, "0::/", 4);
  put("/proc/self/cgroup", long_line);
  CHECK_EQ(limit(), 0);
  put("/proc/self/cgroup", "0::/a\n");
  CHECK_EQ(limit(), MiB);
  static const char* const mounts[] = {"",
                                       "\n",
                                       " - cgroup2\n",
                                       "1 2 3 4 - cgroup2 x y\n",
                                       "a b c / /sys/fs/cgroup\n",
                                       "31 23 0:28 / /sys/fs/cgroup rw - cgroup3 x rw,memory\n"};
  for (size_t i = 0; i < COUNT_OF(mounts); i++) {
    put("/proc/self/mountinfo", mounts[i]);
    CHECK_FOR(limit() == 0, "mounts '%s'", mounts[i]);
  }
  clear();
  CHECK_EQ(limit(), 0);
}

// Lines at the ends of what is read at a time.
static void check_seams(void) {
  static char mounts[9000];
  for (size_t pad = 900; pad < 1100; pad++) {
    memset(mounts, 'x', pad);
    mounts[pad] = '\n';
    strcpy(mounts + pad + 1, mount_v2);
    start("0::/a\n", mounts);
    put("/sys/fs/cgroup/a/memory.max", "1048576\n");
    CHECK_FOR(limit() == MiB, "pad %zu", pad);
    if (pad > 910 && pad < 1015) pad += 5;
  }
}

int main(void) {
  watchdog(120);
  if (mkdtemp(root) == NULL) {
    test_skip("everything", "no directory for files");
    return skip_code;
  }
  if (_mi_prim_machine_memory() < 512 * MiB) {
    test_skip("everything", "the machine has less memory than the containers here");
    return skip_code;
  }
  _mi_prim_container_root = root;
  check_v2();
  check_v1();
  check_parts();
  check_wrong();
  check_seams();
  clear();
  rmdir(root);
  return check_result();
}
#endif
