// Proves: the function that a heap profile is written by may wait for a thread that uses the loader, however many libraries the
// program has; and each of them is in the profile.
#define _GNU_SOURCE
#include "../check.h"
#include <mimalloc-profile.h>
#include <mimalloc.h>
#include "base/mode.h"
#include "support.h"

#if !defined(__GLIBC__) || !defined(__linux__)
int main(void) {
  test_skip("everything", "the system has no small library to make copies of");
  return skip_code;
}
#else
  #include <dlfcn.h>
  #include <fcntl.h>
  #include <link.h>
  #include <pthread.h>

enum { n_copies = 40, name_size = 200 }; // their names fill the buffer of the profile

static char   profile[MiB];
static size_t profile_size;

// ---- copies of a library ------------------------------------------------------------------------------------------------

static char  directory[] = "/tmp/mimalloc-profile-XXXXXX";
static char  paths[n_copies][sizeof(directory) + name_size + 1];
static void* copies[n_copies];

static void copy_file(const char* from, const char* to) {
  static char text[64 * KiB];
  int         in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_EXCL, 0700);
  CHECK(in >= 0 && out >= 0);
  for (ssize_t n; (n = read(in, text, sizeof(text))) > 0;) CHECK_EQ(write(out, text, (size_t)n), n);
  close(in);
  close(out);
}

static bool load_copies(void) {
  struct link_map* map;
  void*            library = dlopen("libutil.so.1", RTLD_NOW);
  if (library == NULL || dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || mkdtemp(directory) == NULL) return false;
  for (int i = 0; i < n_copies; i++) {
    snprintf(paths[i], sizeof(paths[i]), "%s/%0*d", directory, name_size - 1, i);
    copy_file(map->l_name, paths[i]);
    copies[i] = dlopen(paths[i], RTLD_NOW);
    CHECK_FOR(copies[i] != NULL, "%s", dlerror());
  }
  return true;
}

static void unload_copies(void) {
  for (int i = 0; i < n_copies; i++) {
    if (copies[i] != NULL) dlclose(copies[i]);
    unlink(paths[i]);
  }
  rmdir(directory);
}

// ---- writing ----------------------------------------------------------------------------------------------------------

static int count_object(struct dl_phdr_info* info, size_t size, void* n) {
  (void)info;
  (void)size;
  ++*(size_t*)n;
  return 0;
}

static void* use_loader(void* n) {
  dl_iterate_phdr(&count_object, n);
  return NULL;
}

static int write_part(const void* data, size_t size, void* n_parts) {
  pthread_t thread;
  size_t    n_objects = 0;
  CHECK_EQ(pthread_create(&thread, NULL, &use_loader, &n_objects), 0);
  CHECK_EQ(pthread_join(thread, NULL), 0);
  CHECK(n_objects > n_copies);
  ++*(size_t*)n_parts;
  if (size > sizeof(profile) - profile_size) return ENOSPC;
  memcpy(profile + profile_size, data, size);
  profile_size += size;
  return 0;
}

int main(void) {
  size_t n_parts = 0;
  watchdog(60);
  if (MI_TRACK || TEST_SANITIZED) {
    test_skip("everything", "the tool watches every block, or the loader");
    return skip_code;
  }
  if (!load_copies()) {
    test_skip("everything", "there is no libutil.so.1, or no place for copies of it");
    return skip_code;
  }
  CHECK_EQ(mi_profile_start(4096), 0);
  for (int i = 0; i < 1000; i++) mi_free(mi_malloc(4096));
  CHECK_EQ(mi_profile_dump_to(&write_part, &n_parts), 0);
  CHECK(n_parts > 2);
  for (int i = 0; i < n_copies; i++) CHECK(memmem(profile, profile_size, paths[i], strlen(paths[i])) != NULL);
  unload_copies();
  return check_result();
}
#endif
