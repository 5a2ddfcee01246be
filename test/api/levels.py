#!/usr/bin/env python3
"""A program and a library of different levels of the interface: what differs between the levels does not link and does not
load, or works all the same.

  levels.py --cc CC --work DIR --include DIR --library 2 SO --library 3 SO

Exit status 1 if something else happens."""

import argparse
import os
import pathlib
import re
import subprocess
import sys

# Uses of what is at the other level something else, or has another number.
USES = {
    "mi_option_set": "mi_option_set(mi_option_allow_thp, 0);",
    "mi_option_get": "if (mi_option_get(mi_option_generic_collect) != 10000) return 1;",
    "mi_option_enable": "mi_option_enable(mi_option_visit_abandoned);",
    "mi_reserve_os_memory_ex": "mi_arena_id_t id; if (mi_reserve_os_memory_ex(64 << 20, false, false, true, &id) != 0) return 1;",
    "mi_heap_new_in_arena": "mi_heap_delete(mi_heap_new_in_arena(0));",
    "mi_heap_new_ex": "mi_heap_delete(mi_heap_new_ex(0, true, 0));",
    "mi_arena_area": "size_t n = 1; if (mi_arena_area(0, &n) != NULL || n != 0) return 1;",
}

# What is the same at both: it must link with either.
COMMON = "mi_free(mi_malloc(10)); mi_collect(true); mi_heap_delete(mi_heap_new()); (void)mi_version();"

# A program without our header whose ids are of the other level.  `above` is what a store of a pointer would run over.
OWN = """
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
typedef struct mi_heap_s mi_heap_t;
typedef ID mi_arena_id_t;
int        mi_reserve_os_memory_ex(size_t size, bool commit, bool large, bool exclusive, mi_arena_id_t* id);
mi_heap_t* mi_heap_new_in_arena(mi_arena_id_t id);
void*      mi_heap_malloc(mi_heap_t* heap, size_t size);
void*      mi_arena_area(mi_arena_id_t id, size_t* size);
bool       mi_arena_contains(mi_arena_id_t id, const void* p);
void       mi_heap_destroy(mi_heap_t* heap);
int main(void) {
  struct { mi_arena_id_t id, above; } ids[2];
  memset(ids, 0xAA, sizeof(ids));
  size_t size = 0;
  if (mi_reserve_os_memory_ex((size_t)64 << 20, false, false, true, &ids[0].id) != 0) return 1;
  if (mi_reserve_os_memory_ex((size_t)1 << 62, false, false, true, &ids[1].id) == 0) return 2;
  mi_heap_t* heap = mi_heap_new_in_arena(ids[0].id);
  if (heap == NULL) return 3;
  char* p = (char*)mi_heap_malloc(heap, 1000);
  if (p == NULL || !mi_arena_contains(ids[0].id, p)) return 4;
  if (mi_arena_area(ids[0].id, &size) == NULL || size < (size_t)60 << 20) return 5;
  if (mi_arena_area(ids[1].id, &size) != NULL || size != 0) return 6;
  mi_heap_destroy(heap);
  return 0;
}
"""


def call(*command, env=None):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=100, env={**os.environ, **(env or {})})


class Check:
    def __init__(self, args):
        self.cc, self.work, self.include = args.cc, args.work, args.include
        self.libraries = {int(level): pathlib.Path(path).resolve() for level, path in args.library}
        self.n_done = self.n_wrong = 0
        self.work.mkdir(parents=True, exist_ok=True)

    def expect(self, is_right, what, result):
        self.n_done += 1
        if not is_right:
            self.n_wrong += 1
            print(f"{what}: ended with {result.returncode}\n{result.stdout}{result.stderr}")

    def compile(self, text, library, *flags):
        source = self.work / "client.c"
        source.write_text(text, encoding="utf-8")
        link = [library, f"-Wl,-rpath,{library.parent}"] if library else []
        return call(self.cc, "-w", *flags, f"-I{self.include}", source, "-o", self.work / "client", *link)

    def with_header(self, level, library_level, name, statement):
        """A program that is compiled for one level, with the library of another or the same one."""
        what = f"{name} of level {level} with the library of level {library_level}"
        text = f"#include <mimalloc.h>\nint main(void) {{ {statement} return 0; }}\n"
        result = self.compile(text, self.libraries[library_level], f"-DMI_API_LEVEL={level}")
        if level == library_level or name not in USES:
            self.expect(result.returncode == 0, f"linking {what}", result)
            result = call(self.work / "client")
            self.expect(result.returncode == 0, f"running {what}", result)
        else:
            self.expect(result.returncode != 0 and re.search(rf"undefined.*`{name}_level{level}'", result.stderr), f"linking {what}", result)

    def loading(self, level, library_level):
        """Linked with its own library, and loaded with the other's in its place."""
        text = f"#include <mimalloc.h>\nint main(void) {{ {USES['mi_option_set']} return 0; }}\n"
        own = self.libraries[level]
        self.compile(text, own, f"-DMI_API_LEVEL={level}", "-Wl,-z,now", "-Wl,--disable-new-dtags", "-Wl,-rpath," + str(self.work.resolve()))
        needed = re.search(r"NEEDED.*\[(lib\S*mimalloc\S*)\]", call("readelf", "-d", self.work / "client").stdout)[1]
        place = self.work / needed
        place.unlink(missing_ok=True)
        place.symlink_to(self.libraries[library_level])
        result = call(self.work / "client")
        is_right = (result.returncode == 0 if level == library_level else
                    result.returncode != 0 and f"mi_option_set_level{level}" in result.stderr)
        self.expect(is_right, f"loading a program of level {level} with the library of level {library_level}", result)

    def own_declarations(self, kind, library_level):
        result = self.compile(f"#define ID {kind}\n{OWN}", self.libraries[library_level])
        self.expect(result.returncode == 0, f"linking {kind}s as ids", result)
        result = call(self.work / "client")
        self.expect(result.returncode == 0, f"{kind}s as ids with the library of level {library_level}", result)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--include", type=pathlib.Path, required=True)
    parser.add_argument("--library", nargs=2, action="append", metavar=("LEVEL", "SO"), required=True)
    check = Check(parser.parse_args())
    for level in (2, 3):
        for library_level in (2, 3):
            for name, statement in {**USES, "what is common": COMMON}.items():
                check.with_header(level, library_level, name, statement)
            check.loading(level, library_level)
            check.own_declarations("void*" if level == 3 else "int", library_level)
    print(f"{check.n_done} checks, {check.n_wrong} failed")
    return 1 if check.n_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
