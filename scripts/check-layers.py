#!/usr/bin/env python3
"""Holds the sources against the rules of docs/design/README.md:

  layer      a file of src/ includes only files of its own layer or a lower one
  public     the public headers are included by src/base/public.h only
  first      a source includes its own header before all others of ours
  cycle      no header includes itself by way of others
  system     no conditional on the operating system outside src/prim, but for the files in SYSTEM_ALLOWED
  c-in-c     no source includes a source, but for src/static.c
  list       cmake/sources.cmake, src/static.c and the files in src/ are the same sources
  long       (a warning) a function of more than MAX_FUNCTION_LINES lines

Exit status 1 if a rule is broken.  --self-test breaks each rule in a small tree and expects to be told."""

import re

import checks

LAYERS = ["base", "prim", "support", "arena", "page", "heap", "api"]
MAX_FUNCTION_LINES = 80

# Files outside src/prim that must know the system: they are about the compiler, or about the ABI of its libc.
SYSTEM_ALLOWED = {"src/base/compiler.h", "src/base/atomic.h", "src/api/override.c"}
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
        self.warnings = []
        self.files = sorted(p for p in (root / "src").rglob("*") if p.suffix in (".c", ".h"))
        self.lines = {p: p.read_text(encoding="utf-8").splitlines() for p in self.files}
        self.includes = {p: list(self._includes_of(p)) for p in self.files}

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
            if name.startswith("src/prim/") or name in SYSTEM_ALLOWED:
                continue
            for number, line in enumerate(self.lines[path], 1):
                match = CONDITIONAL.match(line)
                if match and SYSTEM_MACROS.search(match[2]):
                    self.breaks("system", path, number, f"conditional on the system outside src/prim: {line.strip()}")

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
            for name in sorted({n for n in listed if listed.count(n) > 1}):
                self.breaks("list", where, 1, f"has {name} twice")

    def check_long(self):
        for path in self.files:
            start = None
            for number, line in enumerate(self.lines[path], 1):
                if start is None and line[:1].strip() and line[0] not in "#/}" and line.endswith("{") and "(" in line:
                    start = number
                elif line.startswith("}"):
                    if start is not None and number - start + 1 > MAX_FUNCTION_LINES:
                        self.warnings.append(("long", f"{self.name(path)}:{start}", f"a function of {number - start + 1} lines"))
                    start = None

    def check(self):
        for rule in (self.check_layers, self.check_first, self.check_cycles, self.check_system, self.check_c_in_c,
                     self.check_list, self.check_long):
            rule()
        self.counted = f"{len(self.files)} files"


# ---- self-test --------------------------------------------------------------------------------------------------------

GOOD = {
    "include/mimalloc.h": "#if defined(_WIN32)\n#endif\n",
    "src/base/bits.h": "#include <stddef.h>\n",
    "src/base/atomic.h": "#if defined(__APPLE__)\n#endif\n",
    "src/prim/prim.h": '#include "../base/bits.h"\n',
    "src/prim/linux.c": '#include "prim.h"\n#if defined(__linux__)\n#endif\n',
    "src/base/public.h": '#include "../../include/mimalloc.h"\n',
    "src/page/page.h": '#include "../prim/prim.h"\n',
    "src/page/page.c": '#include "page.h"\n#include "../base/bits.h"\nint f(void) {\n' + "  g();\n" * 70 + "}\n",
    "src/api/malloc.c": '#include "../page/page.h"\n#include "../base/public.h"\n',
    "src/static.c": '#include "prim/linux.c"\n#include "page/page.c"\n#include "api/malloc.c"\n',
    "cmake/sources.cmake": "set(mi_sources\n  src/prim/linux.c\n  src/page/page.c # src/old.c\n  src/api/malloc.c)\n",
}
BAD = [
    ("layer", {"src/base/bits.h": '#include "../prim/prim.h"\n', "src/prim/prim.h": ""}),
    ("layer", {"src/page/page.h": '#include "../heap/theap.h"\n', "src/heap/theap.h": ""}),
    ("layer", {"src/page/page.h": '#include "gone.h"\n'}),
    ("layer", {"src/util.h": ""}),
    ("public", {"src/api/malloc.c": '#include "../../include/mimalloc.h"\n'}),
    ("public", {"src/page/page.h": "#include <mimalloc.h>\n"}),
    ("first", {"src/page/page.c": '#include "../base/bits.h"\n#include "page.h"\n'}),
    ("cycle", {"src/page/page.h": '#include "word.h"\n', "src/page/word.h": '#include "page.h"\n'}),
    ("system", {"src/page/page.h": "#ifdef __linux__\n#endif\n"}),
    ("system", {"src/api/malloc.c": "  #  elif X && defined(_WIN32)\n"}),
    ("c-in-c", {"src/api/malloc.c": '#include "../page/page.c"\n'}),
    ("list", {"src/page/extra.c": ""}),
    ("list", {"src/static.c": '#include "prim/linux.c"\n#include "page/page.c"\n'}),
    ("list", {"cmake/sources.cmake": "set(mi_sources src/prim/linux.c src/page/page.c src/api/malloc.c src/api/gone.c)\n"}),
    ("list", {"cmake/sources.cmake": "set(s src/prim/linux.c src/page/page.c src/page/page.c src/api/malloc.c)\n"}),
    ("long", {"src/page/page.h": "static int f(void) {\n" + "  g();\n" * 80 + "}\n"}),
]


if __name__ == "__main__":
    checks.main(__doc__, Tree, GOOD, BAD)
