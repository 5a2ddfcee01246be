#!/usr/bin/env python3
"""Compiles the public headers as every standard of C and C++ that the compilers here know, at both levels of the interface,
with many warnings as errors: all headers together, with each allocator in use, each header alone, and a module that exports
what calls the inlined allocation.

  standards.py [COMPILER...]     by default gcc, g++ and clang of some version, those that are there

Exit status 1 if something does not compile, 77 if there is no compiler.  --self-test breaks a header and expects to be told."""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

INCLUDE = pathlib.Path(__file__).resolve().parent.parent.parent / "include"
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wundef", "-Wcast-qual", "-Wcast-align", "-Werror"]
WARNINGS_C = ["-Wstrict-prototypes", "-Wmissing-prototypes", "-Wc++-compat"]
WARNINGS_CXX = ["-Wold-style-cast", "-Wzero-as-null-pointer-constant", "-Wno-long-long"]
C90 = "c90"    # with headers alone, and bool of the compiler
C = [C90, "c99", "c11", "c17", "c2x"]
CXX = ["c++98", "c++11", "c++14", "c++17", "c++20", "c++2b"]
HEADERS = sorted(path.name for path in INCLUDE.glob("*.h"))

ALL_C = """
#include <stdlib.h>
#include <string.h>
#include <mimalloc.h>
#include <mimalloc-stats.h>
#include <mimalloc-override.h>
int use(void);
int use(void) {
  mi_stats_t_decl(stats);
  int* p = mi_malloc_tp(int);
  free(realloc(p, 100));
  return mi_stats_get(&stats) ? mi_version() : 0;
}
"""

ALL_CXX = """
#include <list>
#include <string>
#include <vector>
#include <mimalloc.h>
#include <mimalloc-inline.h>
#include <mimalloc-stats.h>
#include <mimalloc-pmr.h>
#include <mimalloc-new-delete.h>
template <void* (*allocate)(mi_inline_t, size_t)> struct linked {};
linked<&mi_inline_malloc> is_linked(); // C++98: only what has external linkage; so do modules
int use() {
  mi_stats_t_decl(stats);
  std::vector<int, mi_stl_allocator<int> > vector(10, 1);
  std::basic_string<char, std::char_traits<char>, mi_stl_allocator<char> > text("hello");
  bool is_equal = vector.get_allocator() == mi_stl_allocator<char>() && !(mi_stl_allocator<int>() != vector.get_allocator());
#if defined(MI_HAS_HEAP_STL_ALLOCATOR)
  std::list<int, mi_heap_stl_allocator<int> > list(10, 1);
  std::list<int, mi_heap_destroy_stl_allocator<int> > other(10, 1);
  is_equal = is_equal && list.get_allocator() != mi_heap_stl_allocator<char>();
  list.push_back(other.front());
#elif __cplusplus >= 201103L
  #error "no allocators with a heap"
#endif
#if defined(MI_HAS_HEAP_MEMORY_RESOURCE)
  mi_heap_memory_resource resource;
  std::pmr::vector<int> polymorphic(&resource);
  polymorphic.push_back(1);
#elif __cplusplus >= 201703L
  #error "no memory resource"
#endif
  return is_equal && mi_stats_get(&stats) ? static_cast<int>(text.size() + vector.size()) : 0;
}
"""

MODULE = """
module;
#include <mimalloc-inline.h>
export module fast;
export inline void* take(mi_inline_t handle, size_t size) { return mi_inline_malloc(handle, size); }
"""


def compiles(compiler, standard, level, text, include):
    language = "c++" if "++" in standard else "c"
    command = [compiler, "-x", language, f"-std={standard}", "-fsyntax-only", f"-DMI_API_LEVEL={level}", f"-I{include}",
               *WARNINGS, *(WARNINGS_CXX if language == "c++" else WARNINGS_C)]
    if standard == C90 and "clang" in compiler:
        command.append("-Wno-c99-extensions")
    if language == "c++" and "clang" not in compiler:
        command.append("-Wuseless-cast")
    if "export module" in text:
        command += ["-x", "c++-module"] if "clang" in compiler else ["-fmodules-ts"]
    command.append("-")
    return subprocess.run(command, input=text, capture_output=True, text=True)


def knows(compiler, standard, text="extern int x;\n"):
    return compiles(compiler, standard, 2, text, INCLUDE).returncode == 0


def find_compilers(wanted):
    if wanted:
        return wanted
    clangs = ["clang"] + [f"clang-{version}" for version in range(30, 9, -1)]
    found = [name for name in ["gcc"] if shutil.which(name)] + [name for name in clangs if shutil.which(name)][:1]
    return found


def run(compilers, include, verbose=True):
    n_done, wrong = 0, []
    for compiler in compilers:
        for standard in C + CXX:
            if not knows(compiler, standard):
                continue
            alone = standard in (C90, "c11", "c++17")
            texts = {} if standard == C90 else {"all": ALL_CXX if "++" in standard else ALL_C}
            texts.update({name: f"#include <{name}>\nextern int x;\n" for name in HEADERS if alone})
            if standard in ("c++20", "c++2b") and knows(compiler, standard, "export module m;\n"):
                texts["module"] = MODULE
            for level in (2, 3):
                for name, text in texts.items():
                    result = compiles(compiler, standard, level, text, include)
                    n_done += 1
                    if result.returncode != 0:
                        wrong.append(f"{compiler} -std={standard}, level {level}, {name}:")
                        wrong += result.stderr.splitlines()[:5]
    if verbose:
        print("\n".join(wrong + [f"{n_done} compilations, {sum(line.endswith(':') for line in wrong)} wrong"]))
    return n_done, wrong


def self_test(compilers):
    with tempfile.TemporaryDirectory() as directory:
        include = pathlib.Path(directory)
        for header in INCLUDE.glob("*.h"):
            text = header.read_text(encoding="utf-8")
            if header.name == "mimalloc.h":
                text = text.replace("bool operator!=(const mi_heap_stl_allocator", "bool not_operator(const mi_heap_stl_allocator")
            (include / header.name).write_text(text, encoding="utf-8")
        n_done, wrong = run(compilers[:1], include, verbose=False)
        is_told = any("c++14" in line for line in wrong) and not any("c++98" in line or "c11" in line for line in wrong)
        print(f"self-test: {n_done} compilations, {'as expected' if is_told else 'WRONG: ' + repr(wrong[:3])}")
        return 0 if is_told else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("compilers", nargs="*")
    args = parser.parse_args()
    compilers = find_compilers(args.compilers)
    if not compilers:
        print("skipped: no compiler")
        return 77
    if args.self_test:
        return self_test(compilers)
    n_done, wrong = run(compilers, INCLUDE)
    return 1 if wrong or n_done == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
