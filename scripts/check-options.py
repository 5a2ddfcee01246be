#!/usr/bin/env python3
"""Holds what is said about options against the sources:

  rows       the options of mi_option_t in include/mimalloc.h, and those of our own in src/support/option.h, are the rows of the
             table in src/support/option.c, in the same order and for the same levels of the interface
  header     an option that nothing reads has "no effect here" in its comment in the header, and no other has
  table      an option that nothing reads has NO_EFFECT in its row of the table, and all others have EFFECT

An option is read if a file in src/ names it in code; but the files of SILENT do not count unless they ask for its value.

Exit status 1 if a rule is broken.  --self-test breaks each rule in a small tree and expects to be told."""

import re

import checks

HEADER = "include/mimalloc.h"
OWN = "src/support/option.h"
TABLE = "src/support/option.c"

# These store options, and so name some whose value they do not use.
SILENT = {OWN, TABLE, "src/support/options.c"}
READ = r"\b(?:mi_option_get|mi_option_get_clamp|mi_option_get_size|mi_option_is_enabled|_mi_option_get_fast)\(mi_option_%s(?:_row)?\b"

NO_EFFECT = "no effect here"
ENUMERATOR = re.compile(r"^\s*mi_option_(\w+),\s*(/\*.*?\*/)?", re.M)
OWN_OPTION = re.compile(r"^#define mi_option_(\w+?)(?:_row)?\s", re.M)  # ..._row: programs know it by another number
ROW = re.compile(r'^\s*X([23]?)\s*\("(\w+)",(.*)\)\s*\\?\s*$', re.M)


def without_comments(text):
    """Strings stay: no option's enumerator is in one."""
    return re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.S)


class Tree:
    def __init__(self, root):
        self.root = root
        self.broken = []    # (rule, where, text)
        self.header = self._header()
        self.own = OWN_OPTION.findall((root / OWN).read_text(encoding="utf-8"))
        self.table = [(name, level, fields) for level, name, fields in ROW.findall((root / TABLE).read_text(encoding="utf-8"))]
        self.code = {path.relative_to(root).as_posix(): without_comments(path.read_text(encoding="utf-8"))
                     for path in sorted((root / "src").rglob("*")) if path.suffix in (".c", ".h")}
        names = {name for name, *_ in self.header + self.table}
        self.read = {name for name in names if self._is_read(name)}

    def _header(self):
        """(name, level, comment) of each enumerator; the level is "2", "3", or "" for both."""
        text = (self.root / HEADER).read_text(encoding="utf-8")
        text = text[text.index("typedef enum mi_option_e {"):]
        text = text[:text.index("_mi_option_last")]
        level, found = "", []
        for line in text.splitlines():
            if line.startswith("#"):
                directive = line[1:].split()
                if directive[0] == "if":
                    level = "2" if "<" in directive else "3"
                elif directive[0] == "else":
                    level = {"2": "3", "3": "2"}[level]
                else:
                    level = ""
            match = ENUMERATOR.match(line)
            if match:
                found.append((match[1], level, match[2] or ""))
        return found

    def _is_read(self, name):
        word = re.compile(rf"\bmi_option_{name}(?:_row)?\b")
        asks = re.compile(READ % name)
        return any((asks if path in SILENT else word).search(code) for path, code in self.code.items())

    def check_rows(self):
        want = [(name, level) for name, level, _ in self.header] + [(name, "") for name in self.own]
        have = [(name, level) for name, level, _ in self.table]
        for name, level in want:
            if (name, level) not in have:
                self.broken.append(("rows", TABLE, f"lacks {name} as {HEADER} or {OWN} has it"))
        for name, level in have:
            if (name, level) not in want:
                self.broken.append(("rows", TABLE, f"has {name}, which {HEADER} and {OWN} do not have so"))
        if sorted(want) == sorted(have) and want != have:
            self.broken.append(("rows", TABLE, "has another order than mi_option_t"))

    def check_header(self):
        for name, _, comment in self.header:
            if name in self.read and NO_EFFECT in comment:
                self.broken.append(("header", HEADER, f"{name} has '{NO_EFFECT}', but is read"))
            if name not in self.read and NO_EFFECT not in comment:
                self.broken.append(("header", HEADER, f"{name} lacks '{NO_EFFECT}': nothing reads it"))

    def check_table(self):
        for name, _, fields in self.table:
            words = re.findall(r"\b(?:NO_)?EFFECT\b", fields)
            want = "EFFECT" if name in self.read else "NO_EFFECT"
            if words != [want]:
                self.broken.append(("table", TABLE, f"{name} has {' '.join(words) or 'nothing'}, not {want}"))

    def check(self):
        for rule in (self.check_rows, self.check_header, self.check_table):
            rule()
        n_read = sum(name in self.read for name, _, _ in self.table)
        self.counted = f"{len(self.table)} options, {n_read} of them read"


# ---- self-test --------------------------------------------------------------------------------------------------------

GOOD_ENUM = """typedef enum mi_option_e {
  mi_option_verbose, /* 0  0  print */
#if MI_API_LEVEL < 3
  mi_option_tag, /* 1  -  no effect here */
#else
  mi_option_old_tag, /* -  1  no effect here */
#endif
  mi_option_delay, /* 2  2  ms */
  _mi_option_last,
"""
GOOD_TABLE = """#define OPTION_TABLE(X, X2, X3) \\
  X ("verbose", 0, COUNT, EFFECT, NULL) \\
  X2("tag", 0, ANY, NO_EFFECT, NULL) \\
  X3("old_tag", 0, ANY, NO_EFFECT, "tag") \\
  X ("delay", 10, COUNT, EFFECT, "reset_delay") \\
  /* our own */ \\
  X ("leaks", 0, SWITCH, EFFECT, NULL)
"""
GOOD = {
    HEADER: GOOD_ENUM,
    OWN: "#define mi_option_leaks ((mi_option_t)(_mi_option_last + 0))\n",
    TABLE: GOOD_TABLE,
    "src/support/options.c": "if (_mi_option_get_fast(mi_option_verbose)) f();\nif (option == mi_option_tag) g();\n",
    "src/arena/purge.c": "// mi_option_tag\nmi_option_get(mi_option_delay); /* mi_option_old_tag\n */ f(mi_option_leaks);\n",
}
BAD = [
    ("rows", {TABLE: GOOD_TABLE.replace('  X2("tag", 0, ANY, NO_EFFECT, NULL) \\\n', "")}),
    ("rows", {TABLE: GOOD_TABLE.replace('X2("tag"', 'X3("tag"')}),
    ("rows", {TABLE: GOOD_TABLE + '  X ("more", 0, ANY, NO_EFFECT, NULL)\n'}),
    ("rows", {HEADER: GOOD_ENUM.replace("  _mi_option_last", "  mi_option_more, /* 3  3  no effect here */\n  _mi_option_last")}),
    ("rows", {TABLE: GOOD_TABLE.replace('X ("delay"', 'X ("x"').replace('X ("verbose"', 'X ("delay"').replace('X ("x"', 'X ("verbose"')}),
    ("header", {HEADER: GOOD_ENUM.replace("2  2  ms", "2  2  no effect here")}),
    ("header", {HEADER: GOOD_ENUM.replace("1  -  no effect here", "1  -  a tag")}),
    ("header", {HEADER: GOOD_ENUM.replace("  mi_option_tag, /* 1  -  no effect here */", "  mi_option_tag,")}),
    ("table", {TABLE: GOOD_TABLE.replace("10, COUNT, EFFECT", "10, COUNT, NO_EFFECT")}),
    ("table", {TABLE: GOOD_TABLE.replace('X2("tag", 0, ANY, NO_EFFECT', 'X2("tag", 0, ANY, EFFECT')}),
    ("table", {TABLE: GOOD_TABLE.replace('X2("tag", 0, ANY, NO_EFFECT', 'X2("tag", 0, ANY')}),
    ("table", {"src/arena/purge.c": "mi_option_get(mi_option_delay);\n"}),
]


if __name__ == "__main__":
    checks.main(__doc__, Tree, GOOD, BAD)
