#!/usr/bin/env python3
"""Holds the public headers, the libraries and the tests against test/api/table.csv, which has a row for each thing that the
interface has:

  kind       what it is
  function   declared in `header`, exported by the library, at both levels
  theap      the same, but for programs of level 2 a macro
  inline     defined in `header`
  macro      a function-like macro
  class      a C++ class
  override   a macro of mimalloc-override.h, and what it stands for
  operator   defined by mimalloc-new-delete.h, and exported; the name is the symbol, see the prototype for the operator
  standard   a name of the C library that our library exports too

  level2, level3       its prototype at the levels of the interface; = where they agree
  zero ... other       what it does with a size of 0, with NULL, with too much, with a bad alignment, and what else the
                       tests are to see; empty where there is nothing special

  table.py generate --level 2 --language c|c++|library FILE     writes a program that proves the prototypes when it is
                       compiled, and the addresses when it runs: it names all functions that the library lacks
  table.py check [--library LEVEL SO]... [--operators PROGRAM]  declarations, exported symbols and tests against the table
  table.py --self-test"""

import argparse
import csv
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TEST_DIRS = ["test/api", "test/override"]
# Functions of libc that the library stands in for, and that are no part of its interface (src/prim/linux_thread.c).
STANDS_IN_FOR = {"pthread_create", "dlopen", "dlmopen"}

EXPORTED = {"function", "theap", "operator", "standard"}
# What programs of a level 2 see of these are macros; who includes the headers as the library does, sees functions.
LANGUAGES = ["c", "c++", "library"]


def read_table(path):
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if row["level3"] == "=":
            row["level3"] = row["level2"]
    return rows


# ---- programs that prove the prototypes -------------------------------------------------------------------------------

PROGRAM = """// Made from test/api/table.csv by table.py: do not edit.
{defines}#include <mimalloc.h>
#include <mimalloc-stats.h>
#include <mimalloc-limit.h>
#include <mimalloc-profile.h>
{includes}
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#if MI_API_LEVEL != {level}
  #error "the headers are of another level"
#endif

// ---- prototypes

#if defined(__cplusplus)
  #pragma GCC diagnostic ignored "-Wignored-attributes" // those of the functions, which are no part of their types
  #define SAME(expression, ...) static_assert(std::is_same<decltype(expression), __VA_ARGS__>::value, #expression)
  #define WEAK(name)            extern "C" decltype(name) name __attribute__((weak))
#else
  #define SAME(expression, ...) \\
    _Static_assert(__builtin_types_compatible_p(__typeof__(expression), __VA_ARGS__), #expression)
  #define WEAK(name)            extern __typeof__(name) name __attribute__((weak))
#endif

typedef struct tp_s {{
  long a, b;
}} tp;
extern mi_heap_t* hp;
extern tp*        p;
extern size_t     n;

{prototypes}
// ---- addresses: weak, so that all that are missing can be named

typedef void fun_t(void);
static const struct {{
  const char* name;
  fun_t*      address;
}} funs[] = {{
{addresses}}};

// ---- mimalloc-override.h

{override_include}#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)
static const struct {{
  const char* name;
  const char* text;
  const char* wanted;
}} macros[] = {{
{overrides}  {{"", "", ""}}}};

// Equal but for blanks?
static int is_same_text(const char* a, const char* b) {{
  for (;;) {{
    while (*a == ' ') a++;
    while (*b == ' ') b++;
    if (*a != *b) return 0;
    if (*a == 0) return 1;
    a++;
    b++;
  }}
}}

int main(void) {{
  int n_wrong = 0;
  for (size_t i = 0; i < sizeof(funs) / sizeof(funs[0]); i++) {{
    if (funs[i].address != NULL) continue;
    fprintf(stderr, "%s%s", n_wrong == 0 ? "missing in the library:\\n" : (n_wrong % 6 == 0 ? ",\\n" : ", "), funs[i].name);
    n_wrong++;
  }}
  if (n_wrong > 0) fprintf(stderr, "\\n");
  for (size_t i = 0; i < sizeof(macros) / sizeof(macros[0]); i++) {{
    if (is_same_text(macros[i].text, macros[i].wanted)) continue;
    fprintf(stderr, "%s is %s, not %s\\n", macros[i].name, macros[i].text, macros[i].wanted);
    n_wrong++;
  }}
  fprintf(stderr, "%zu functions, %d wrong\\n", sizeof(funs) / sizeof(funs[0]), n_wrong);
  return n_wrong == 0 ? 0 : 1;
}}
"""


def pointer_type(row, prototype, cxx):
    """The type of a pointer to the function: 'int f(void) noexcept' gives 'int (*)(void) noexcept'."""
    if not cxx:
        prototype = prototype.removesuffix(" noexcept")
    return re.sub(r"\b" + re.escape(row["name"]) + r"\(", "(*)(", prototype, count=1)


def prototype_lines(row, prototype, level, language):
    name, kind = row["name"], row["kind"]
    cxx = language == "c++"
    if kind == "theap" and level == 2 and language != "library":
        return [f"#if !defined({name})", f'  #error "{name} is no macro"', "#endif"]
    if kind in ("function", "theap", "inline"):
        lines = [f"SAME(&{name}, {pointer_type(row, prototype, cxx)});"]
        return lines if kind == "inline" else lines + [f"WEAK({name});"]
    if kind == "macro":
        lines = [f"#if !defined({name})", f'  #error "{name} is no macro"', "#endif"]
        return lines + ([f"SAME({prototype}, tp*);"] if "tp" in re.findall(r"\w+", prototype)[1:] else [])
    if kind == "operator" and cxx:
        result, operator, arguments = re.match(r"(.*?) (operator .*?)\((.*)\)", prototype).groups()
        return [f"SAME(static_cast<{result} (*)({arguments})>(&::{operator}), {result} (*)({arguments}));"]
    if kind == "class" and cxx and row["header"] == "mimalloc.h":
        return [f"static_assert(sizeof({name}<int>) > 0, \"\");"]
    if kind == "class" and cxx:
        return [f"static_assert(sizeof({name}) > 0, \"\");"]
    if kind == "standard" and not cxx:
        return [prototype + ";"]
    return []


def generate(rows, level, language):
    prototypes, addresses, overrides = [], [], []
    for row in rows:
        prototype = row[f"level{level}"]
        lines = prototype_lines(row, prototype, level, language)
        prototypes += lines
        if any(line.startswith("WEAK") for line in lines):
            addresses.append(f'  {{"{row["name"]}", (fun_t*)&{row["name"]}}},')
        if row["kind"] == "override" and language == "c":
            macro, wanted = re.match(r"(.*?\)) (.*)", prototype).groups()
            overrides.append(f'  {{"{macro}", TEXT({macro}), "{wanted}"}},')
    includes = {"c++": "#include <mimalloc-inline.h>\n#include <mimalloc-new-delete.h>\n#include <mimalloc-pmr.h>\n#include <type_traits>\n"}
    return PROGRAM.format(
        level=level, defines="#define MI_LIBRARY_BUILD 1\n" if language == "library" else "",
        includes=includes.get(language, "#include <malloc.h>\n#include <mimalloc-inline.h>\n#include <stdlib.h>\n"),
        prototypes="".join(line + "\n" for line in prototypes), addresses="".join(line + "\n" for line in addresses),
        override_include="#include <mimalloc-override.h>\n" if language == "c" else "",
        overrides="".join(line + "\n" for line in overrides))


# ---- declarations, symbols, tests ---------------------------------------------------------------------------------------

def without_comments(text):
    return re.sub(r"/\*.*?\*/", " ", re.sub(r"//[^\n]*", " ", text), flags=re.S)


def declared_names(text):
    """Functions, function-like macros and classes of ours that a header declares."""
    text = without_comments(text).replace("\\\n", " ")
    macros = set(re.findall(r"^\s*#\s*define\s+(mi_\w+)\(", text, flags=re.M))
    code = re.sub(r"^\s*#.*$", "", text, flags=re.M)
    classes = set(re.findall(r"\b(?:struct|class)\s+(mi_\w+(?<!_s))\s*(?::|\{)", code))
    funs = set(re.findall(r"\b(mi_\w+)\s*\(", code))
    return {name for name in funs | macros | classes if not name.startswith(("mi_attr_", "mi_decl_"))}


def override_names(text):
    return set(re.findall(r"^\s*#\s*define\s+(\w+)\(", without_comments(text), flags=re.M))


def called_names(texts):
    """Names that are followed by a parenthesis or, for classes, by < or > or a variable; and the symbols of operators.h."""
    names = set()
    for text in texts:
        code = re.sub(r'"(\\.|[^"\\\n])*"', '""', without_comments(text))
        names |= set(re.findall(r"\b(\w+)\s*\(", code)) | set(re.findall(r"\b(mi_\w+)\s*(?:[<>]|\w+\s*[({;])", code))
        names |= set(re.findall(r"\b(?:NEW|DELETE)\((_Z\w+),", code))
    return names


def exported_symbols(library):
    lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1].split("@")[0] for line in lines.splitlines() if line.split()[-2] in "TWi"}


def program_symbols(program):
    lines = subprocess.run(["nm", "--defined-only", program], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1] for line in lines.splitlines() if line.split()[-2] in "TW"}


def check(rows, headers, tests, libraries, operators):
    """What is wrong, as lines.  `headers` and `tests`: name -> text; `libraries`: (level, symbols); `operators`: symbols
    of a program with mimalloc-new-delete.h, or None."""
    wrong = []
    of_kind = lambda *kinds: {row["name"] for row in rows if row["kind"] in kinds}
    declared = set().union(*[declared_names(text) for text in headers.values()])
    rowed = of_kind("function", "theap", "inline", "macro", "class")
    wrong += [f"declared but no row: {name}" for name in sorted(declared - rowed)]
    wrong += [f"a row but not declared: {name}" for name in sorted(rowed - declared)]
    for row in rows:
        if row["header"] and row["kind"] in ("function", "theap", "inline", "macro", "class"):
            if row["name"] not in declared_names(headers[row["header"]]):
                wrong.append(f"not in {row['header']}: {row['name']}")
    overrides = override_names(headers["mimalloc-override.h"])
    wrong += [f"macro but no row: {name}" for name in sorted(overrides - of_kind("override"))]
    wrong += [f"a row but no macro: {name}" for name in sorted(of_kind("override") - overrides)]

    marked = set(re.findall(r"mi_decl_level\((mi_\w+)\)", "".join(map(without_comments, headers.values()))))
    for level, symbols in libraries:
        exported = of_kind(*EXPORTED) | {f"{name}_level{level}" for name in marked}
        wrong += [f"level {level}: not exported: {name}" for name in sorted(exported - symbols)]
        wrong += [f"level {level}: exported but no row: {name}" for name in sorted(symbols - exported - STANDS_IN_FOR)]
    if operators is not None:
        wrong += [f"not defined by mimalloc-new-delete.h: {n}" for n in sorted(of_kind("operator") - operators)]

    called = called_names(tests.values())
    wrong += [f"no test calls {row['name']} ({row['kind']})" for row in rows
              if row["name"] not in called and row["kind"] != "override"]
    overriders = called_names([t for t in tests.values() if "mimalloc-override.h" in t])
    wrong += [f"no test uses the macro {name}" for name in sorted(of_kind("override") - overriders)]
    return wrong


def read_all(paths):
    return {path.name: path.read_text(encoding="utf-8") for path in paths}


def test_sources():
    return [path for d in TEST_DIRS for path in sorted((ROOT / d).glob("*")) if path.suffix in (".c", ".h", ".cpp")]


# ---- self-test ----------------------------------------------------------------------------------------------------------

def small_tree():
    row = lambda kind, name, two, three="=", header="mimalloc.h": dict(
        group="g", name=name, kind=kind, level2=two, level3=two if three == "=" else three, header=header)
    rows = [row("function", "mi_f", "int mi_f(int x) noexcept"),
            row("override", "free", "free(p) mi_f(p)", header="mimalloc-override.h")]
    headers = {"mimalloc.h": "/* mi_x() */\nint mi_f(int x);\n", "mimalloc-override.h": "#define free(p) mi_f(p)\n"}
    tests = {"test-a.c": '#include <mimalloc-override.h>\nint main(void) { return mi_f(1) + free(2); }\n'}
    return rows, headers, tests, [(2, {"mi_f"})]


def break_row(rows, headers, tests, libraries):
    rows.append(dict(rows[0], name="mi_g"))


def break_header(rows, headers, tests, libraries):
    headers["mimalloc.h"] += "int mi_g(int x);\n"


def break_override(rows, headers, tests, libraries):
    headers["mimalloc-override.h"] += "#define strdup(s) mi_f(s)\n"


def break_export(rows, headers, tests, libraries):
    libraries[0][1].clear()


def break_more_exported(rows, headers, tests, libraries):
    libraries[0][1].add("mi_secret")


def break_test(rows, headers, tests, libraries):
    tests["test-a.c"] = '#include <mimalloc-override.h>\n// mi_f(1)\nchar* s = "mi_f(2)"; int x = free(3);\n'


def break_override_test(rows, headers, tests, libraries):
    tests["test-a.c"] = "int main(void) { return mi_f(1) + free(2); }\n"


def self_test():
    n_wrong = 0
    wanted = [(None, ""), (break_row, "not declared"), (break_header, "no row"), (break_override, "macro but no row"),
              (break_export, "not exported"), (break_more_exported, "exported but no row"),
              (break_test, "no test calls"), (break_override_test, "no test uses")]
    for change, text in wanted:
        tree = small_tree()
        if change:
            change(*tree)
        wrong = check(*tree, operators=None)
        if (not wrong) if change is None else any(text in line for line in wrong):
            continue
        print(f"self-test: {change.__name__ if change else 'nothing broken'}: found {wrong}")
        n_wrong += 1
    # A prototype that is not the declared one must not compile.
    with tempfile.TemporaryDirectory() as directory:
        for good, prototype in ((True, "void* mi_malloc(size_t size) noexcept"), (False, "void* mi_malloc(int size) noexcept")):
            rows = [dict(group="g", name="mi_malloc", kind="function", level2=prototype, level3=prototype, header="")]
            for language, compiler, suffix in (("c", "cc", "c"), ("c++", "c++", "cpp")):
                source = pathlib.Path(directory) / f"t.{suffix}"
                source.write_text(generate(rows, 2, language), encoding="utf-8")
                command = [compiler, "-fsyntax-only", f"-I{ROOT / 'include'}", str(source)]
                if (subprocess.run(command, capture_output=True).returncode == 0) != good:
                    print(f"self-test: {prototype} in {language}: {'does not compile' if good else 'compiles'}")
                    n_wrong += 1
    print(f"self-test: {n_wrong} wrong")
    return 1 if n_wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--table", type=pathlib.Path, default=HERE / "table.csv")
    commands = parser.add_subparsers(dest="command")
    generating = commands.add_parser("generate")
    generating.add_argument("--level", type=int, choices=[2, 3], required=True)
    generating.add_argument("--language", choices=LANGUAGES, required=True)
    generating.add_argument("file", type=pathlib.Path)
    checking = commands.add_parser("check")
    checking.add_argument("--library", nargs=2, action="append", default=[], metavar=("LEVEL", "SO"))
    checking.add_argument("--operators", metavar="PROGRAM")
    args = parser.parse_args()
    if args.self_test:
        return self_test()
    rows = read_table(args.table)
    if args.command == "generate":
        args.file.write_text(generate(rows, args.level, args.language), encoding="utf-8")
        return 0
    if args.command != "check":
        parser.error("generate or check")
    wrong = check(rows, read_all(sorted((ROOT / "include").glob("*.h"))), read_all(test_sources()),
                  [(level, exported_symbols(library)) for level, library in args.library],
                  program_symbols(args.operators) if args.operators else None)
    for line in wrong:
        print(line)
    print(f"{len(rows)} rows, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
