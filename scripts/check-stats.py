#!/usr/bin/env python3
"""Checks that each field of mi_stats_t, in include/mimalloc-stats.h, is counted or says that it is not:

  silent   a field that no source writes has a comment beginning with "always 0: " and the reason, and no other field has
  row      a field has a comment in its own line

Exit status 1 if a rule is broken.  --self-test breaks each rule in a small tree and expects a report of it."""

import re

import checks

HEADER = "include/mimalloc-stats.h"
ROW = re.compile(r"^ *MI_STAT_COUNT(?:ER)?\((\w+)\) *(?:/\*(.*)\*/)? *\\?$", re.M)
ARRAY = re.compile(r"^ *mi_stat_count(?:er)?_t +(\w+)\[.*\]; *(?:/\*(.*)\*/)?$", re.M)
# What follows the name of a field where it is written: directly, or as the first argument of a function that adds to it.
WRITES = (r"_mi_stat_(?:count|increase|decrease)\([^;]*&_mi_stat_live\.{0}\b", r"stats_add\(&\w*(?:->|\.){0}\b",
          r"(?:->|\.){0}(?:\.\w+)? *(?:=[^=]|\+=)")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)


class Stats:
    def __init__(self, root):
        self.broken = []
        header = (root / HEADER).read_text(encoding="utf-8")
        self.fields = ROW.findall(header)
        self.fields += ARRAY.findall(header)
        sources = sorted(root.glob("src/**/*.c"))
        self.text = "\n".join(COMMENT.sub("", path.read_text(encoding="utf-8")) for path in sources)
        self.counted = f"{len(self.fields)} fields, {len(sources)} sources"

    def is_written(self, name):
        return any(re.search(pattern.format(re.escape(name)), self.text) for pattern in WRITES)

    def check(self):
        for name, comment in self.fields:
            says_so = re.match(r" *always 0: \w", comment) is not None
            if not comment.strip():
                self.broken.append(("row", HEADER, f"{name} has no comment"))
            elif self.is_written(name) and says_so:
                self.broken.append(("silent", HEADER, f"{name} says that it is always 0, and is written"))
            elif not self.is_written(name) and not says_so:
                self.broken.append(("silent", HEADER, f"{name} is never written, and does not say that it is always 0"))


GOOD = {
    HEADER: "#define MI_STAT_FIELDS() \\\n  MI_STAT_COUNT(pages)   /* pages */ \\\n  MI_STAT_COUNTER(calls) /* calls */ \\\n"
            "  MI_STAT_COUNT(ghosts)  /* always 0: there are none */\n",
    "src/a.c": "void f(void) { _mi_stat_increase(&_mi_stat_live.pages, 1); stats->calls.total += 2; }\n",
}
BAD = [
    ("silent", {"src/a.c": "void f(void) { _mi_stat_increase(&_mi_stat_live.pages, 1); }\n"}),
    ("silent", {"src/a.c": "void f(void) { /* _mi_stat_increase(&_mi_stat_live.pages, 1); */ stats->calls.total += 2; }\n"}),
    ("silent", {"src/a.c": GOOD["src/a.c"] + "void g(void) { stats_add(&s->ghosts, 1); }\n"}),
    ("silent", {"src/a.c": "void f(void) { int a = _mi_stat_live.pages.total == 0; stats->calls.total += 2; }\n"}),
    ("row", {HEADER: GOOD[HEADER].replace("/* calls */", "")}),
]

if __name__ == "__main__":
    checks.main(__doc__, Stats, GOOD, BAD)
