#!/usr/bin/env python3
"""Checks the documents, that is, all files *.md of the tree, and what comments refer to:

  link    a relative link leads to a file, or to a directory with a README.md, and its #anchor to a heading there
  path    a path of the tree in `code` exists (not in decisions, which speak of the tree at their date)
  dated   a decision has a line "Date: YYYY-MM-DD" below its heading
  index   docs/decisions/README.md lists each decision with its title and its date
  layer   docs/design/<layer>.md names each source file of src/<layer>
  calls   docs/design/calls.md names each function as `layer/file.c: function, function`, which defines it; a section's
          "Files to read (N)" are N files named there, and the table at the top has the same N
  tests   test/README.md has a row for each source file, and the tests that it names exist
  failures    each row of docs/design/failure-modes.md names a test, and the tests that it names exist
  invariant   each letter of invariants is defined in one source file, with the numbers 1, 2, 3 and so on; comments of src/
          and pages of docs/design refer to those that exist

Exit status 1 if a rule is broken.  --self-test breaks each rule in a small tree and expects a report of it."""

import pathlib
import re

import checks
from invariants import Invariants

SKIPPED = {"build", ".git", ".cache"}
DECISIONS = "docs/decisions"
TESTS = "test/README.md"
CALLS = "docs/design/calls.md"
FAILURES = "docs/design/failure-modes.md"
CALL = re.compile(r"\b(\w+/\w+\.[ch]): (\w+(?:, \w+)*)")
FUNCTION = re.compile(r"\b_?mi_\w+")
TO_READ = re.compile(r"^\*\*Files to read \((\d+)\):\*\* ((?:`[\w/.]+`[,.]\s+)+)", re.M)
COUNT = re.compile(r"^\| \[[^\]]+\]\(#([\w-]+)\) \| (\d+) \|$", re.M)
ROW = re.compile(r"^\| `(src/[\w./]+\.c)` \| (.+) \|$", re.M)
LINK = re.compile(r"\]\(([^()\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")
# (?!...): the directory of installed headers is no path of the tree.
PATH = re.compile(r"(?!include/mimalloc-\d)(?:\.ci|bench|cmake|demo|docs|include|nim|packaging|scripts|src|test)/[\w./-]+")
SUFFIXES = ("", ".c", ".cpp", ".h", ".py", ".md")
DATE = re.compile(r"Date: (\d{4}-\d{2}-\d{2})[.;]")


def without_code(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)


def anchors(text):
    """The names that GitHub gives to headings."""
    headings = re.findall(r"^#+ +(.*)$", without_code(text), re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


class Docs:
    def __init__(self, root):
        self.root = root
        self.broken = []    # (rule, where, text)
        self.pages = {}
        for path in sorted(root.rglob("*.md")):
            name = path.relative_to(root)
            if not SKIPPED & set(name.parts):
                self.pages[name.as_posix()] = path.read_text(encoding="utf-8")

    def is_there(self, name):
        return any((self.root / (name + suffix)).exists() for suffix in SUFFIXES)

    def check_links(self, name, text):
        for link in LINK.findall(without_code(text)):
            if re.match(r"[a-z]+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = (self.root / name).parent / path if path else self.root / name
            if not target.exists():
                self.broken.append(("link", name, f"{link} leads nowhere"))
            elif target.is_dir() and not (target / "README.md").exists():
                self.broken.append(("link", name, f"{link} is a directory without a README.md: the site has no page for it"))
            elif anchor and anchor not in anchors(target.read_text(encoding="utf-8")):
                self.broken.append(("link", name, f"{link}: there is no such heading"))

    def check_paths(self, name, text):
        for code in CODE.findall(without_code(text)):
            if PATH.fullmatch(code) and not self.is_there(code.rstrip("/")):
                self.broken.append(("path", name, f"{code} does not exist"))

    def check_decision(self, name, text, index):
        lines = text.split("\n")
        title = lines[0].removeprefix("# ")
        date = DATE.match(lines[2]) if len(lines) > 2 else None
        if not date:
            self.broken.append(("dated", name, "has no line `Date: YYYY-MM-DD.` below its heading"))
            return
        number, _, rest = title.partition(". ")
        if f"| [{number}]({pathlib.PurePosixPath(name).name}). {rest} | {date[1]} |" not in index:
            self.broken.append(("index", name, f"is not in {DECISIONS}/README.md with its title and date"))

    def check_tests(self, text):
        rows = dict(ROW.findall(text))
        sources = {path.relative_to(self.root).as_posix() for path in self.root.glob("src/*/*.c")}
        for source in sorted(sources ^ rows.keys()):
            self.broken.append(("tests", TESTS, f"{source} " + ("has no row" if source in sources else "does not exist")))
        for source, tests in rows.items():
            for kind, name in re.findall(r"`(\w+)-([\w-]+)`", tests):
                if not list(self.root.glob(f"test/{kind}/test-{name}.c*")):
                    self.broken.append(("tests", TESTS, f"{source}: {kind}-{name} does not exist"))

    def is_test(self, name):
        """A program, or what CMake is told to be a test."""
        kind, _, rest = name.partition("-")
        if list(self.root.glob(f"test/{kind}/test-{rest}.c*")):
            return True
        added = re.compile(rf"\b(?:NAME|mi_add_script\() ?{re.escape(name)}\b(?!-)")
        wiring = [*self.root.glob("test/CMakeLists.txt"), *self.root.glob("test/*/wiring.cmake")]
        return any(added.search(path.read_text(encoding="utf-8")) for path in wiring)

    def check_failures(self, text):
        for row in re.findall(r"^\| (?!failure \|)(\w.*) \|$", text, re.M):
            what, *_, tests = row.split(" | ")
            names = re.findall(r"`([\w-]+)`", tests)
            if not names:
                self.broken.append(("failures", FAILURES, f"{what}: no test"))
            for name in names:
                if not self.is_test(name):
                    self.broken.append(("failures", FAILURES, f"{what}: {name} does not exist"))

    def check_call(self, file, function):
        path = self.root / "src" / file
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        if not re.search(rf"^[^\s#/][^\n;]*\b{function}\([^;{{]*\{{", text, re.M):
            self.broken.append(("calls", CALLS, f"src/{file} does not define {function}"))

    def check_files_to_read(self, section, counts):
        """A section is a heading and what follows it."""
        anchor = anchors("## " + section.split("\n")[0]).pop()
        found = TO_READ.search(section)
        if not found:
            self.broken.append(("calls", CALLS, f"{anchor} has no line **Files to read (N):**"))
            return
        files = set(re.findall(r"`([^`]+)`", found[2]))
        said = {int(found[1]), counts.get(anchor)}
        if said != {len(files)}:
            self.broken.append(("calls", CALLS, f"{anchor}: {len(files)} files to read; the section and the table say {said}"))
        for file in sorted(files - {file for file, _ in CALL.findall(section)}):
            self.broken.append(("calls", CALLS, f"{anchor}: no function of {file} is named"))

    def check_calls(self, text):
        for name in sorted(set(FUNCTION.findall(CALL.sub("", text)))):
            self.broken.append(("calls", CALLS, f"{name} is named without its file"))
        for file, functions in CALL.findall(text):
            for function in functions.split(", "):
                self.check_call(file, function)
        counts = {anchor: int(n) for anchor, n in COUNT.findall(text)}
        for section in re.split(r"^## ", text, flags=re.M)[1:]:
            self.check_files_to_read(section, counts)

    def check_layers(self):
        for path in sorted(self.root.glob("src/*/*.[ch]")):
            page = f"docs/design/{path.parent.name}.md"
            names = re.findall(r"`([^`\n]+)`", self.pages.get(page, ""))
            if path.name not in names and path.stem + ".c" not in names and path.stem + ".h" not in names:
                self.broken.append(("layer", page, f"does not name {path.name}"))

    def check_invariants(self):
        invariants = Invariants(self.root)
        for path, text in invariants.wrong_definitions():
            self.broken.append(("invariant", path, text))
        pages = [(name, [(1, text)]) for name, text in self.pages.items()
                 if name.startswith("docs/design/") and name != "docs/design/invariants.md"]
        for name, texts in [*invariants.comments.items(), *pages]:
            for line, text in texts:
                for wrong in invariants.wrong_references(text):
                    self.broken.append(("invariant", f"{name}:{line}", wrong))

    def check(self):
        self.check_layers()
        self.check_invariants()
        self.check_tests(self.pages.get(TESTS, ""))
        self.check_failures(self.pages.get(FAILURES, ""))
        self.check_calls(self.pages.get(CALLS, ""))
        index = self.pages.get(f"{DECISIONS}/README.md", "")
        for name, text in self.pages.items():
            self.check_links(name, text)
            is_decision = name.startswith(f"{DECISIONS}/")
            if not is_decision:
                self.check_paths(name, text)
            elif re.match(r"\d", pathlib.PurePosixPath(name).name):
                self.check_decision(name, text, index)
        self.counted = f"{len(self.pages)} documents"


# ---- self-test --------------------------------------------------------------------------------------------------------

CALLS_HEAD = "# Calls\n\n| [z](#a-z) | 1 |\n\n## a z\n\n"
GOOD = {
    "README.md": "# Read\n\n[a](docs/a.md#two-words), `src/x.c`, `docs/*.md`, [b](https://x.org/y)\n\n```\n[no](no.md)\n```\n",
    "src/x.c": "",
    "docs/a.md": "# A\n\n## Two words\n\n[here](#a)\n",
    "docs/decisions/README.md": "| [1](001-x.md). X is so | 2026-01-02 |\n",
    "docs/decisions/001-x.md": "# 1. X is so\n\nDate: 2026-01-02.\n\n`src/gone.c`\n",
    "src/layer/y.c": "",
    "test/unit/test-y.c": "",
    "docs/design/layer.md": "# Layer\n\n`y.c`, `z.h`\n",
    "src/page/page.h": "// Pages.  Layer: page.\n//\n// P1  One.  Not C11.\n//     As P2.\n// P2  Two (P1).\n",
    "src/heap/heap.h": "// Q1  By page.h, P2, and ../page/page.h, P1.\nint p; // P2\nconst char* s = \"P3\"; // Z9\n",
    "docs/design/page.md": "`page.h`, P1, says Q1\n",
    "docs/design/heap.md": "`heap.h`\n",
    "test/README.md": "| `src/layer/y.c` | `unit-y` |\n",
    "test/model/wiring.cmake": "add_test(NAME model-y COMMAND y)\n",
    FAILURES: "| failure | tests |\n|---|---|\n| hangs | `unit-y`, `model-y` |\n",
    "src/layer/z.h": "static inline void _mi_z(int a,\n                         int b) {\n  z();\n}\nvoid _mi_z_other(void);\n",
    "docs/design/calls.md": CALLS_HEAD + "`layer/z.h: _mi_z`\n\n**Files to read (1):** `layer/z.h`.\n",
}
BAD = [
    ("link", {"docs/a.md": "# A\n"}),
    ("link", {"README.md": "[a](docs/b.md)\n"}),
    ("link", {"README.md": "[a](src)\n"}),
    ("path", {"README.md": "`src/y.c`\n"}),
    ("dated", {"docs/decisions/001-x.md": "# 1. X is so\n\nNo date.\n"}),
    ("index", {"docs/decisions/README.md": "| [1](001-x.md). X was so | 2026-01-02 |\n"}),
    ("index", {"docs/decisions/README.md": "| [1](001-x.md). X is so | 2026-01-03 |\n"}),
    ("layer", {"docs/design/layer.md": "# Layer\n\ny.c, `z.h`\n"}),
    ("calls", {CALLS: CALLS_HEAD + "`layer/z.h: _mi_z_other`\n\n**Files to read (1):** `layer/z.h`.\n"}),
    ("calls", {CALLS: CALLS_HEAD + "`layer/gone.h: _mi_z`, `layer/z.h: _mi_z`\n\n**Files to read (1):** `layer/z.h`.\n"}),
    ("calls", {CALLS: CALLS_HEAD + "`layer/z.h: _mi_z`, _mi_y\n\n**Files to read (1):** `layer/z.h`.\n"}),
    ("calls", {CALLS: CALLS_HEAD + "`layer/z.h: _mi_z`\n\n**Files to read (2):** `layer/z.h`.\n"}),
    ("calls", {CALLS: CALLS_HEAD + "`layer/z.h: _mi_z`\n\n**Files to read (1):** `layer/y.c`.\n"}),
    ("calls", {CALLS: CALLS_HEAD + "`layer/z.h: _mi_z`\n"}),
    ("tests", {"test/README.md": ""}),
    ("tests", {"test/README.md": "| `src/layer/y.c` | `unit-z` |\n"}),
    ("failures", {FAILURES: "| hangs | `unit-y`, `unit-z` |\n"}),
    ("failures", {FAILURES: "| hangs | `model` |\n"}),
    ("failures", {FAILURES: "| hangs | none |\n"}),
    ("invariant", {"src/heap/heap.h": "// Q1  One.\n// P1  Two.\n"}),
    ("invariant", {"src/heap/heap.h": "// Q1  One.\n// Q3  Two.\n"}),
    ("invariant", {"src/heap/heap.h": "// Q2  One.\n", "docs/design/page.md": "`page.h`\n"}),
    ("invariant", {"src/heap/heap.h": "// Q1  One.\nint p; // P3\n"}),
    ("invariant", {"src/heap/heap.h": "// Q1  One.\nint p; // gone.h, P1\n"}),
    ("invariant", {"src/heap/heap.h": "// Q1  As page.h, Q1, says.\n"}),
    ("invariant", {"docs/design/heap.md": "`heap.h`, Q2\n"}),
]


if __name__ == "__main__":
    checks.main(__doc__, Docs, GOOD, BAD)
