#!/usr/bin/env python3
"""Makes the functions, options and statistics of rust/src/raw from the public headers, which also give their documentation, and
from the prototypes in test/api/table.csv, which the tests of the interface prove.

  scripts/rust-bindings.py            writes the files (and formats them, if rustfmt is there)
  scripts/rust-bindings.py --check    fails if the files are not what would be written"""

import argparse
import csv
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "rust/src/raw"
NAMES = "raw_names.rs"
HEADERS = ["mimalloc.h", "mimalloc-stats.h"]

# Sections of the headers, and the files for them.
FILES = {
    "basic": "basic", "extended": "basic", "zero initialised": "basic", "aligned": "aligned",
    "with the size of the block": "sized", "heaps": "heaps", "from a heap": "from_heap", "heaps of one thread": "theaps",
    "as in POSIX and other C libraries": "posix", "as operator new": "operators", "hooks": "hooks", "arenas": "arenas",
    "subprocesses": "subprocesses", "process and threads": "process", "statistics": "statistics",
    "which heap owns a pointer": "owners", "visiting blocks": "visits", "finding errors": "errors", "options": "options",
    "mimalloc-stats.h": "numbers",
}

TYPES = {
    "void*": "*mut c_void", "const void*": "*const c_void", "void**": "*mut *mut c_void", "char*": "*mut c_char",
    "const char*": "*const c_char", "char**": "*mut *mut c_char", "unsigned char*": "*mut u8", "const unsigned char*": "*const u8",
    "wchar_t*": "*mut wchar_t", "const wchar_t*": "*const wchar_t", "wchar_t**": "*mut *mut wchar_t", "size_t": "usize",
    "size_t*": "*mut usize", "int": "c_int", "long": "c_long", "bool": "bool", "double": "f64", "mi_heap_t*": "*mut mi_heap_t",
    "const mi_heap_t*": "*const mi_heap_t", "mi_theap_t*": "*mut mi_theap_t", "const mi_theap_t*": "*const mi_theap_t",
    "mi_stats_t*": "*mut mi_stats_t", "mi_option_t": "mi_option_t", "mi_arena_id_t": "mi_arena_id_t",
    "mi_arena_id_t*": "*mut mi_arena_id_t", "mi_subproc_id_t": "mi_subproc_id_t",
    **{f"{name}*": f"Option<{name}>" for name in ("mi_output_fun", "mi_deferred_free_fun", "mi_error_fun", "mi_commit_fun_t",
                                                  "mi_block_visit_fun", "mi_heap_visit_fun")},
}


def rust_type(c_type):
    """The type at both levels; a pair of them where they differ."""
    if c_type not in TYPES:
        sys.exit(f"rust-bindings.py: no type of Rust is known for `{c_type}`; add it to TYPES")
    return TYPES[c_type]


def functions():
    """Name -> (result, [(name, type)], ...) for each level, from the table."""
    found = {}
    with open(ROOT / "test/api/table.csv", newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["kind"] in ("function", "theap") and row["header"] in HEADERS:
                found[row["name"]] = [parse(row[column].removeprefix("=") or row["level2"]) for column in ("level2", "level3")]
    return found


def parse(prototype):
    result, arguments = re.fullmatch(r"(.*?)\s*\bmi_\w+\((.*)\)(?: noexcept)?", prototype).groups()
    pairs = []
    for argument in () if arguments == "void" else arguments.split(","):
        c_type, name = re.fullmatch(r"\s*(.*?)\s*\b(\w+)", argument).groups()
        pairs.append((name, rust_type(c_type)))
    return "" if result == "void" else rust_type(result), pairs


# ---- documentation --------------------------------------------------------------------------------------------------------

def doc(comment, known, indent=""):
    """A comment of the header as documentation: names of functions become links, and what is indented stays as it is."""
    lines, fenced = [], False
    for line in comment.split("\n"):
        line = re.sub(r"^   ", "", line.rstrip())
        if line.startswith("  ") != fenced and (line or not fenced):
            fenced = not fenced
            lines.append("```text" if fenced else "```")
        if not fenced:
            line = re.sub(r"([*\[\]<>])", r"\\\1", line.strip())
            line = re.sub(r"\b_?mi_\w+", lambda m: f"[`{m[0]}`](super::{m[0]})" if m[0] in known else f"`{m[0]}`", line)
        lines.append(line)
    if fenced:
        lines.append("```")
    return "".join(f"{indent}/// {line}".rstrip() + "\n" for line in lines)


TOKEN = re.compile(r"/\* ---- (?P<section>.*?) -+ \*/|/\*(?P<comment>.*?)\*/|\b(?P<name>mi_\w+)\s*\((?=[^;{#]*?\)[^;{]*?;)", re.S)


def documented(known):
    """(section, name, comment) for each function, in the order of the headers."""
    for header in HEADERS:
        text = (ROOT / "include" / header).read_text(encoding="utf-8")
        text = re.sub(r"^#define(?:.*\\\n)*.*$", "", text, flags=re.M)
        text = re.sub(r"mi_(?:attr|decl)_(?!export)\w+(?:\([^()]*\))?", "", text)
        section, comment, seen = header, "", set()
        for match in TOKEN.finditer(text):
            if match["section"]:
                section, comment = match["section"], ""
            elif match["comment"]:
                comment = match["comment"].strip()
            elif match["name"] in known and match["name"] not in seen:
                seen.add(match["name"])
                yield section, match["name"], comment


# ---- files ------------------------------------------------------------------------------------------------------------------

LEVEL = {2: '#[cfg(not(feature = "level3"))]', 3: '#[cfg(feature = "level3")]'}
HEAD = "// Made by scripts/rust-bindings.py from {of}: do not edit.\n\n"


SHORT = 60    # characters of a comment that is no longer than a reference to it


def declaration(name, prototypes, comment, known):
    lines = []
    levels = [None] if prototypes[0] == prototypes[1] else [2, 3]
    for level in levels:
        result, arguments = prototypes[level == 3]
        lines.append(doc(comment, known, "    ").rstrip("\n"))
        if level:
            lines.append("    " + LEVEL[level])
        listed = ", ".join(f"{rust_name(a)}: {t}" for a, t in arguments)
        lines.append(f"    pub fn {name}({listed}){f' -> {result}' if result else ''};")
    return "\n".join(lines)


def rust_name(name):
    return f"r#{name}" if name in ("in", "type", "fn", "move", "ref", "use", "where") else name


def function_files():
    known = functions()
    files, placed, first = {}, set(), {}
    for section, name, comment in documented(known):
        if section not in FILES:
            sys.exit(f"rust-bindings.py: section `{section}` of the headers has no file; add it to FILES")
        # A comment above several functions stands at the first of them.
        other = first.setdefault(comment, name)
        text = comment if other == name or len(comment) < SHORT else f"See {other}, with which it is described."
        files.setdefault(FILES[section], []).append(declaration(name, known[name], text, known))
        placed.add(name)
    if placed != set(known):
        sys.exit(f"rust-bindings.py: not found in the headers: {' '.join(sorted(set(known) - placed))}")
    return {f"{file}.rs": HEAD.format(of="the public headers") + "use super::*;\n\nextern \"C\" {\n" + "\n\n".join(body) + "\n}\n"
            for file, body in files.items()}


def option_file():
    """The constants of options; a number that one level has not is left out there."""
    text = (ROOT / "include/mimalloc.h").read_text(encoding="utf-8")
    rows = re.findall(r"^  (_?mi_option_\w+), +/\* +([\d-]+) +([\d-]+)  (.*?)\s*\*/$", text, re.M)
    if len(rows) < 50:
        sys.exit("rust-bindings.py: the table of options in mimalloc.h is not as expected")
    body = []
    for name, level2, level3, what in rows:
        meaning, default = re.fullmatch(r"(.*?)  +(.*)", what).groups()
        shown = f"/// {meaning[0].upper()}{meaning[1:]}. Default: {default}.\n"
        for level, number in ((2, level2), (3, level3)):
            if number != "-" and level2 == level3 and level == 3:
                continue
            if number != "-":
                only = "" if level2 == level3 else f"{LEVEL[level]}\n"
                body.append(f"{shown}{only}pub const {name}: mi_option_t = {number};\n")
    last = [max(int(row[level]) for row in rows if row[level] != "-") + 1 for level in (1, 2)]
    body.append(f'/// How many options there are.\npub const _mi_option_last: mi_option_t = if cfg!(feature = "level3") {{ {last[1]} }} else {{ {last[0]} }};\n')
    return HEAD.format(of="mimalloc.h") + "use super::mi_option_t;\n\n" + "\n".join(body)


def stats_file():
    """mi_stats_t."""
    text = (ROOT / "include/mimalloc-stats.h").read_text(encoding="utf-8")
    only3 = set(re.findall(r"MI_STAT_COUNT(?:ER)?\((\w+)\)", text[text.index("#else\n  #define MI_STAT_FIELDS_HEAPS()"):text.index("/* The fields, in order.")]))
    blocks = {name: text[text.index(f"#define MI_STAT_FIELDS_{name}() \\"):] for name in ("HEAPS", "HEAP_ENDS")}
    parts = {name: "\n".join(re.match(r"(?:.*\\\n)*.*", block)[0].split("\n")[1:]) for name, block in blocks.items()}
    fields = text[text.index("#define MI_STAT_FIELDS() \\"):]
    fields = "\n".join(re.match(r"(?:.*\\\n)*.*", fields)[0].split("\n")[1:])
    for name, part in parts.items():
        fields = fields.replace(f"MI_STAT_FIELDS_{name}()", part)
    body = []
    for kind, name, what in re.findall(r"MI_STAT_(COUNT|COUNTER)\((\w+)\) +/\* (.*?) \*/", fields):
        shown = what if "..." in what else f"{what[0].upper()}{what[1:]}."
        body.append(f"    /// {shown}\n" + ('    #[cfg(feature = "level3")]\n' if name in only3 else "") +
                    f"    pub {name}: mi_stat_{kind.lower()}_t,\n")
    if len(body) != len(set(re.findall(r"MI_STAT_COUNT(?:ER)?\((\w+)\)", fields))) or len(only3) != 3:
        sys.exit("rust-bindings.py: the fields of mi_stats_t are not as expected")
    return HEAD.format(of="mimalloc-stats.h") + f"""use super::*;

/// The statistics, as numbers. The functions that fill it in want `size` and `version` to be set, as `Default` does.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct mi_stats_t {{
    /// The size of this structure in bytes.
    pub size: usize,
    /// `MI_STAT_VERSION`.
    pub version: usize,
{"".join(body)}    /// Always 0: for fields to come.
    pub _stat_reserved: [mi_stat_count_t; 4],
    /// Always 0: for fields to come.
    pub _stat_counter_reserved: [mi_stat_counter_t; 4],
    /// Blocks by size.
    pub malloc_bins: [mi_stat_count_t; MI_BIN_HUGE + 1],
    /// Pages by the size of their blocks.
    pub page_bins: [mi_stat_count_t; MI_BIN_HUGE + 1],
    /// Always 0: all ranges take pages of all sizes.
    #[cfg(feature = "level3")]
    pub chunk_bins: [mi_stat_count_t; MI_CBIN_COUNT],
}}
"""


def names_file():
    """For a test: every function, as a table, which links only if the library has all of them."""
    rows = "".join(f'    ("{name}", raw::{name} as *const ()),\n' for name in sorted(functions()))
    return HEAD.format(of="test/api/table.csv") + f"""use mimalloc_compat::raw;

pub const FUNCTIONS: &[(&str, *const ())] = &[
{rows}];
"""


def place(name):
    return ROOT / "rust/tests/common" / name if name == NAMES else OUT / name


def formatted(files):
    """As rustfmt has it; as they are without it."""
    if shutil.which("rustfmt") is None:
        return None
    with tempfile.TemporaryDirectory() as directory:
        for name, text in files.items():
            (pathlib.Path(directory) / name).write_text(text, encoding="utf-8")
        subprocess.run(["rustfmt", "--edition", "2021", "--config-path", str(ROOT / "rust"),
                        *(str(pathlib.Path(directory) / name) for name in files)], check=True)
        return {name: (pathlib.Path(directory) / name).read_text(encoding="utf-8") for name in files}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    files = formatted({**function_files(), "option_numbers.rs": option_file(), "stats_t.rs": stats_file(), NAMES: names_file()})
    if files is None:
        print("skipped: rustfmt is not installed")
        return 77
    if not args.check:
        for name, text in files.items():
            place(name).write_text(text, encoding="utf-8")
        return 0
    stale = [name for name, text in files.items() if not place(name).exists() or place(name).read_text(encoding="utf-8") != text]
    for name in stale:
        print(f"{place(name).relative_to(ROOT)} is not what the headers say: run scripts/rust-bindings.py")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
