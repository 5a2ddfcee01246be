#!/usr/bin/env python3
"""Holds the sources against the rules of docs/design/README.md:

  layer      a file of src/ includes only files of its own layer or a lower one
  public     the public headers are included by src/base/public.h only
  first      a source includes its own header before all others of ours
  cycle      no header includes itself by way of others
  system     no conditional on the operating system outside src/prim and src/override, but for the files in SYSTEM_ALLOWED
  c-in-c     no source includes a source, but for src/static.c
  list       cmake/sources.cmake, src/static.c and the files in src/ are the same sources
  circle     the units (foo.h with foo.c) of a layer depend on each other without circles, by the names that they use
  up         what foo.h declares is defined in foo.h or foo.c (prim.h: in src/prim), and no unit uses names of a higher layer
  named      what unit foo defines for other files is named _mi_foo or _mi_foo_... (src/prim: _mi_prim_... too), unless the
             public headers declare it.  Macros and types are free, inline functions of src/base are named mi_... like
             the macros beside them, and sources of src/prim, src/api and src/override may define names of the system
  long       no file has more than MAX_FILE_LINES lines, no function more than MAX_FUNCTION_LINES
  costs      the files of src/prim that begin with the name of a system have no more than MAX_SYSTEM_LINES lines together

Exit status 1 if a rule is broken.  --self-test breaks each rule in a small tree and expects to be told."""

import re

import checks
import units
from units import LAYERS, PRIM

MAX_FUNCTION_LINES = 40
MAX_FILE_LINES = 400
MAX_SYSTEM_LINES = 700

# The system that the interface was made for, and what a build adds on request.
FIRST_SYSTEM = "linux"
SYSTEM_EXTRAS = {"windows_etw"}

# Other files that must know the system: they are about the compiler, or choose the sources.
SYSTEM_ALLOWED = {"src/base/compiler.h", "src/base/atomic.h", "src/static.c"}
PUBLIC = "src/base/public.h"
SYSTEM_MACROS = re.compile(
    r"\b(_WIN32|_WIN64|WIN32|__CYGWIN__|__MINGW32__|__linux__|linux|__ANDROID__|__GLIBC__|__GLIBC_PREREQ|__APPLE__|__MACH__|"
    r"TARGET_OS_\w+|__FreeBSD__|__NetBSD__|__OpenBSD__|__DragonFly__|__sun|__HAIKU__|__EMSCRIPTEN__|__wasi__|"
    r"__wasm__|__unix__|_AIX|__Fuchsia__|__QNX__)\b")
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
CONDITIONAL = re.compile(r"^\s*#\s*(if|ifdef|ifndef|elif)\b(.*)")


class Tree:
    def __init__(self, root):
        self.root = root
        self.broken = []    # (rule, where, text)
        self.files = sorted(p for p in (root / "src").rglob("*") if p.suffix in (".c", ".h"))
        self.lines = {p: p.read_text(encoding="utf-8").splitlines() for p in self.files}
        self.includes = {p: list(self._includes_of(p)) for p in self.files}
        self.units = units.Units(root)

    def name(self, path):
        return path.relative_to(self.root).as_posix()

    def layer(self, path):
        """The index of a file's layer, None for src/static.c and for files outside src/."""
        parts = path.relative_to(self.root).parts
        return LAYERS.index(parts[1]) if len(parts) == 3 and parts[0] == "src" and parts[1] in LAYERS else None

    def _includes_of(self, path):
        """(line number, file of ours) for each include that is one of ours."""
        for number, line in enumerate(self.lines[path], 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            for start in ([path.parent] if match[1] == '"' else []) + [self.root / "include"]:
                target = (start / match[2]).resolve()
                if target.is_file() and self.root in target.parents:
                    yield number, target
                    break
            else:
                if match[1] == '"':
                    yield number, None

    def breaks(self, rule, path, number, text):
        self.broken.append((rule, f"{self.name(path)}:{number}", text))

    # ---- rules ------------------------------------------------------------------------------------------------------

    def check_layers(self):
        for path in self.files:
            mine = self.layer(path)
            if mine is None:
                if self.name(path) != "src/static.c":
                    self.breaks("layer", path, 1, "lies in no layer")
                continue
            for number, target in self.includes[path]:
                if target is None:
                    self.breaks("layer", path, number, "includes a file that is not there")
                elif self.root / "include" in target.parents:
                    if self.name(path) != PUBLIC:
                        self.breaks("public", path, number, f"includes {target.name}, not {PUBLIC}")
                elif self.layer(target) is None:
                    self.breaks("layer", path, number, f"{self.name(target)} is in no layer")
                elif self.layer(target) > mine:
                    self.breaks("layer", path, number,
                                f"{LAYERS[mine]} may not include {self.name(target)} of {LAYERS[self.layer(target)]}")

    def check_first(self):
        for path in self.files:
            own = path.with_suffix(".h")
            if path.suffix != ".c" or own not in self.lines:
                continue
            ours = [(n, t) for n, t in self.includes[path] if t is not None and self.root / "src" in t.parents]
            if ours and ours[0][1] != own:
                self.breaks("first", path, ours[0][0], f"{own.name} does not come first")

    def check_cycles(self):
        done = set()

        def visit(path, stack):
            if path in stack:
                self.breaks("cycle", path, 1, " includes ".join(self.name(p) for p in stack[stack.index(path):] + [path]))
                return
            if path in done:
                return
            for _, target in self.includes.get(path, []):
                if target is not None:
                    visit(target, stack + [path])
            done.add(path)

        for path in self.files:
            visit(path, [])

    def check_system(self):
        for path in self.files:
            name = self.name(path)
            if name.startswith(("src/prim/", "src/override/")) or name in SYSTEM_ALLOWED:
                continue
            for number, line in enumerate(self.lines[path], 1):
                match = CONDITIONAL.match(line)
                if match and SYSTEM_MACROS.search(match[2]):
                    self.breaks("system", path, number, f"conditional on the system outside src/prim and src/override: {line.strip()}")

    def check_c_in_c(self):
        for path in self.files:
            if self.name(path) == "src/static.c":
                continue
            for number, target in self.includes[path]:
                if target is not None and target.suffix == ".c":
                    self.breaks("c-in-c", path, number, f"includes {self.name(target)}")

    def check_list(self):
        on_disk = {self.name(p) for p in self.files if p.suffix == ".c" and self.name(p) != "src/static.c"}
        cmake = self.root / "cmake/sources.cmake"
        text = re.sub(r"#.*", "", cmake.read_text(encoding="utf-8"))
        in_cmake = re.findall(r"\bsrc/\S+?\.c\b", text)
        static = self.root / "src/static.c"
        in_static = [self.name(t) for _, t in self.includes[static] if t is not None and t.suffix == ".c"]
        for where, listed in ((cmake, in_cmake), (static, in_static)):
            for name in sorted(on_disk - set(listed)):
                self.breaks("list", where, 1, f"lacks {name}")
            for name in sorted(set(listed) - on_disk):
                self.breaks("list", where, 1, f"has {name}, which is not there")
            for name in sorted({n for n in listed if listed.count(n) > 1 and not n.startswith("src/prim/")}): # systems share those
                self.breaks("list", where, 1, f"has {name} twice")

    def check_circles(self):
        for layer in LAYERS:
            graph = self.units.layer(layer)
            seen = set()
            for unit in graph:
                circle = units.shortest_path(graph, unit, unit)
                if circle is None or frozenset(circle) in seen:
                    continue
                seen.add(frozenset(circle))
                steps = [f" -> {b[1]} ({self.units.uses[a][b][0]})" for a, b in zip(circle, circle[1:])]
                self.breaks("circle", self.units.files[unit][0].path, 1, unit[1] + "".join(steps))

    def check_up(self):
        for source in self.units.sources:
            for item in source.declared:
                owners = self.units.owners(item.name)
                if not units.INTERNAL.match(item.name) or item.name in self.units.public or source.unit in owners:
                    continue
                if not owners and not source.is_header:
                    continue  # defined in assembly, or a symbol of the system
                where = ", ".join("/".join(owner) for owner in owners) or "nothing"
                self.breaks("up", source.path, item.line, f"declares {item.name}, which {where} defines")
            for name in sorted(source.names):
                owners = self.units.owners(name)
                if owners and LAYERS.index(owners[0][0]) > LAYERS.index(source.layer):
                    self.breaks("up", source.path, 1, f"uses {name} of {'/'.join(owners[0])}")

    def check_named(self):
        for source in self.units.sources:
            layer, stem = source.unit
            prefixes = [f"_mi_{stem}"] + ["_mi_prim"] * (layer == "prim")
            users = [unit for unit, uses in self.units.uses.items() if source.unit in uses]
            for item in source.defined:
                is_shared = not item.is_static or source.is_header
                if item.kind not in ("function", "variable") or not is_shared or item.name in self.units.public:
                    continue
                if any(item.name == prefix or item.name.startswith(prefix + "_") for prefix in prefixes):
                    continue
                if not item.name.startswith("_mi_") and (
                        layer == "base" and item.is_static and item.name.startswith("mi_") or
                        layer in ("prim", "api", "override") and not source.is_header and not item.name.startswith("mi_")):
                    continue
                is_own = item.is_static and not any(item.name in self.units.uses[unit][source.unit] for unit in users)
                if not (is_own and item.name.startswith(f"{stem}_")):
                    self.breaks("named", item.path, item.line, f"{item.name} is not named {prefixes[-1]}_...")

    def check_long(self):
        for source in self.units.sources:
            if source.n_lines > MAX_FILE_LINES:
                self.breaks("long", source.path, 1, f"a file of {source.n_lines} lines")
            for item in source.defined:
                if item.kind == "function" and item.n_lines > MAX_FUNCTION_LINES:
                    self.breaks("long", source.path, item.line, f"{item.name} has {item.n_lines} lines")

    def check_costs(self):
        files = {}
        for path in self.files:
            if self.name(path).startswith("src/prim/") and path.stem not in SYSTEM_EXTRAS:
                files.setdefault(path.stem.partition("_")[0], []).append(path)
        for system, paths in files.items():
            n = sum(len(self.lines[path]) for path in paths)
            if n > MAX_SYSTEM_LINES and system != FIRST_SYSTEM:
                self.breaks("costs", paths[0], 1, f"{system} has {n} lines")

    def check(self):
        for rule in (self.check_layers, self.check_first, self.check_cycles, self.check_system, self.check_c_in_c,
                     self.check_list, self.check_circles, self.check_up, self.check_named, self.check_long, self.check_costs):
            rule()
        self.counted = f"{len(self.files)} files"


# ---- self-test --------------------------------------------------------------------------------------------------------

GOOD = {
    "include/mimalloc.h": "#if defined(_WIN32)\n#endif\ntypedef struct mi_heap_s mi_heap_t;\nvoid* mi_malloc(size_t n);\n",
    "src/base/bits.h": "#include <stddef.h>\n#define MI_BITS 8\nstatic inline int mi_bits_min(int a) {\n  return a;\n}\n",
    "src/base/atomic.h": "#if defined(__APPLE__)\n#endif\n",
    "src/prim/prim.h": '#include "../base/bits.h"\nvoid _mi_prim_map(\n    int size);\nextern int _mi_prim_calls;\n',
    "src/prim/linux.c": '#include "prim.h"\n#if defined(__linux__)\n#endif\nint _mi_prim_calls = 0;\n'
                        "void _mi_prim_map(int size) {\n  _mi_prim_own();\n}\nvoid syscall_of_system(void) {\n}\n",
    "src/prim/own.c": '#include "prim.h"\nvoid _mi_own_map(void) {\n  _mi_prim_map(1);\n}\n',
    "src/base/public.h": '#include "../../include/mimalloc.h"\n',
    "src/page/word.h": "#define WORD(x) x\ntypedef struct mi_page_s  mi_page_t;\nstatic inline void word_own(mi_page_t* p) {\n}\n"
                       "static inline void _mi_word(mi_page_t* p) {\n  word_own(p); // mi_page_s, _mi_page_f\n}\n",
    "src/page/page.h": '#include "../prim/prim.h"\n#include "word.h"\ntypedef enum mi_kind_e { MI_KIND } mi_kind_t;\n'
                       "typedef struct mi_page_s {\n  int n;\n} mi_page_t;\nint _mi_page_f(void) WORD(1);\n",
    "src/page/page.c": '#include "page.h"\n#include "../base/bits.h"\n#define _mi_word_m 1\nstatic int page_g(void);\n'
                       "int _mi_page_f(void) {\n" + "  _mi_word(0);\n" * 38 + "}\n",
    "src/api/malloc.c": '#include "../page/page.h"\n#include "../base/public.h"\nvoid* mi_malloc(size_t n) {\n}\nint malloc(void) {\n}\n',
    "src/static.c": '#include "prim/linux.c"\n#include "prim/own.c"\n#include "page/page.c"\n#include "api/malloc.c"\n',
    "cmake/sources.cmake": "set(mi_sources\n  src/prim/linux.c src/prim/own.c\n  src/page/page.c # src/old.c\n  src/api/malloc.c)\n",
}
USES = "static inline int _mi_word_f(void) {\n  return %s;\n}\n"
BAD = [
    ("layer", {"src/base/bits.h": '#include "../prim/prim.h"\n', "src/prim/prim.h": "", "src/prim/linux.c": '#include "prim.h"\n'}),
    ("layer", {"src/page/page.h": '#include "../heap/theap.h"\nint _mi_page_f(void);\n', "src/heap/theap.h": ""}),
    ("layer", {"src/page/page.h": '#include "gone.h"\nint _mi_page_f(void);\n'}),
    ("layer", {"src/util.h": ""}),
    ("public", {"src/api/malloc.c": '#include "../../include/mimalloc.h"\n'}),
    ("public", {"src/page/page.h": "#include <mimalloc.h>\nint _mi_page_f(void);\n"}),
    ("first", {"src/page/page.c": '#include "../base/bits.h"\n#include "page.h"\nint _mi_page_f(void) {\n}\n'}),
    ("cycle", {"src/page/page.h": '#include "word.h"\nint _mi_page_f(void);\n', "src/page/word.h": '#include "page.h"\n' + USES % 1}),
    ("system", {"src/page/word.h": "#ifdef __linux__\n#endif\n"}),
    ("system", {"src/api/malloc.c": "  #  elif X && defined(_WIN32)\n"}),
    ("c-in-c", {"src/api/malloc.c": '#include "../page/page.c"\n'}),
    ("list", {"src/page/extra.c": ""}),
    ("list", {"src/static.c": '#include "prim/linux.c"\n#include "prim/own.c"\n#include "page/page.c"\n'}),
    ("list", {"cmake/sources.cmake": "set(mi_sources src/prim/linux.c src/prim/own.c src/page/page.c src/api/malloc.c src/api/gone.c)\n"}),
    ("list", {"cmake/sources.cmake": "set(s src/prim/linux.c src/prim/own.c src/page/page.c src/page/page.c src/api/malloc.c)\n"}),
    # a function, a variable, an inline function, a macro, an enumerator, a tag and a type, of two units and of three
    *(("circle", {"src/page/word.h": '#include "x.h"\n' + USES % name, "src/page/x.h": text + "static inline int x_y(void) {\n  "
                  "return _mi_word_f();\n}\n"})
      for name, text in (("_mi_x_f()", "static inline int _mi_x_f(void) {\n}\n"), ("MI_X", "#define MI_X 1\n"),
                         ("MI_X", "enum { MI_X = 1 };\n"), ("MI_X", "typedef enum mi_x_e {\n  MI_X\n} mi_x_t;\n"),
                         ("sizeof(struct mi_x_s)", "struct mi_x_s {\n  int n;\n};\n"),
                         ("sizeof(mi_x_t)", "typedef void (*mi_x_t)(int a);\n"), ("sizeof(mi_x_t)", "typedef int mi_x_t[4];\n"))),
    ("circle", {"src/page/word.c": '#include "word.h"\n#include "page.h"\nstatic int word_f(mi_page_t* p) {\n  return p->n;\n}\n',
                "src/static.c": GOOD["src/static.c"] + '#include "page/word.c"\n',
                "cmake/sources.cmake": GOOD["cmake/sources.cmake"] + "set(s src/page/word.c)\n"}),
    ("circle", {"src/page/page.h": "extern int _mi_page_n[2], _mi_page_m;\n", "src/page/page.c": '#include "page.h"\n'
                "int _mi_page_n[2] = {\n  0,\n  MI_A\n};\nint _mi_page_m;\n", "src/page/a.h": "#define MI_A MI_B\n",
                "src/page/b.h": "#define MI_B _mi_page_m\n"}),
    ("up", {"src/page/word.h": "int _mi_word_f(void);\n"}),
    ("up", {"src/page/word.h": "extern int _mi_word_n;\n"}),
    ("up", {"src/base/bits.h": "int _mi_page_f(void);\n"}),
    ("up", {"src/page/word.h": USES % "mi_malloc(1)"}),
    ("up", {"src/prim/prim.h": "void _mi_prim_map(int size);\nextern int _mi_prim_calls;\nint _mi_prim_gone(void);\n"}),
    ("up", {"src/page/page.h": '#include "../prim/prim.h"\n', "src/heap/theap.h": "int _mi_page_f(void);\n"}),
    ("named", {"src/page/word.h": "static inline int _mi_page_g(void) {\n}\n"}),
    ("named", {"src/page/word.h": "static inline int word_f(void) {\n}\n", "src/page/x.h": "#define MI_X word_f()\n"}),
    ("named", {"src/page/page.c": GOOD["src/page/page.c"] + "int page_h(void) {\n}\n"}),
    ("named", {"src/page/page.c": GOOD["src/page/page.c"] + "void* (*_mi_pages)(int) = 0;\n"}),
    ("named", {"src/page/page.c": GOOD["src/page/page.c"] + "int mi_page(void) {\n}\n"}),
    ("named", {"src/prim/own.c": "void _mi_map(void) {\n}\n"}),
    ("named", {"src/api/malloc.c": "void mi_gone(void) {\n}\n"}),
    ("named", {"src/base/bits.h": "static inline int align(void) {\n}\n"}),
    ("long", {"src/page/word.h": "static int word_f(void) {\n" + "  g();\n" * 39 + "}\n"}),
    ("long", {"src/page/word.h": "static int word_f(\n    int a, // {\n    int b) {\n" + "  g();\n" * 37 + "}\n"}),
    ("long", {"src/page/word.h": "// line\n" * 401}),
    ("costs", {"src/prim/own.c": GOOD["src/prim/own.c"] + "// line\n" * 390, "src/prim/own_x.h": "// line\n" * 310}),
]


if __name__ == "__main__":
    checks.main(__doc__, Tree, GOOD, BAD)
