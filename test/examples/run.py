#!/usr/bin/env python3
"""Builds and runs the examples by the commands in their first comments, and compares the output with what these say.

    run.py --build-dir BUILD --work DIR [NAME ...]   with the library that was built in BUILD, installed in DIR/prefix
    run.py --list                                    the names
    run.py --self-test                               tests this script

A comment has lines "Build and run:", the commands, "Prints:" and the output.  In the output N stands for a number and ... for any
text.  examples/README.md must list each example.  Exit status: 0 all is well, 1 something is wrong."""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
EXAMPLES = ROOT / "examples"
SCRIPTED_ELSEWHERE = {"custom-prim"}  # platform-custom-prim builds and runs it


class Wrong(Exception):
    pass


def read(path):
    """The commands and the expected lines of an example, from its first comment; None if it has none."""
    comment = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not re.match(r"(//|#(?!include))", line):
            break
        comment.append(re.sub(r"^(//|#)", "", line))
    parts = re.split(r"^ (Build and run|Prints):$", "\n".join(comment), flags=re.M)
    if len(parts) != 5:
        return None
    commands = [line[3:] for line in parts[2].splitlines() if line.startswith("   ")]
    output = [line[3:] for line in parts[4].splitlines() if line.startswith("   ")]
    if not commands or not output:
        raise Wrong(f"{path}: no commands, or no output")
    return commands, output


def find(examples):
    """The file with the commands of each example, by the name of its directory."""
    found = {}
    for directory in sorted(p for p in examples.iterdir() if p.is_dir()):
        files = [p for p in sorted(directory.iterdir()) if p.suffix in (".c", ".cpp", ".txt") and read(p)]
        if len(files) > 1 or (not files and directory.name not in SCRIPTED_ELSEWHERE):
            raise Wrong(f"{directory}: {len(files)} files say how to build and run it")
        if files:
            found[directory.name] = files[0]
    return found


def pattern_of(line):
    """`line` as a regular expression."""
    words = re.split(r"(\.\.\.|\bN\b)", line)
    return "".join({"...": ".*", "N": r"\d+"}.get(word, re.escape(word)) for word in words)


def differs(printed, wanted):
    """Why the output is not the expected one, or "".  A line of nothing but ... stands for any number of lines."""
    pattern = "".join("(?:.*\n)*?" if line.strip() == "..." else pattern_of(line) + "\n" for line in wanted)
    if re.fullmatch(pattern, printed):
        return ""
    return f"printed:\n{printed}\nwanted:\n" + "\n".join(wanted)


def check_index(text, names):
    listed = re.findall(r"^\| \[([\w-]+)\]\(([\w-]+)/", text, re.M)
    missing = names ^ {name for name, directory in listed if name == directory}
    if missing:
        raise Wrong(f"examples/README.md and the directories differ in: {' '.join(sorted(missing))}")


def environment(prefix):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("MIMALLOC_", "PKG_CONFIG", "CMAKE_", "LD_"))}
    return {**kept, "PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig"), "LD_LIBRARY_PATH": str(prefix / "lib"), "LC_ALL": "C"}


def run_example(path, prefix, work):
    """In a copy of its directory."""
    commands, wanted = read(path)
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(path.parent, work)
    script = "set -e\n" + "\n".join(commands) + "\n"
    result = subprocess.run(["sh", "-c", script], cwd=work, env=environment(prefix), stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=240, check=False)
    if result.returncode != 0:
        raise Wrong(f"exit status {result.returncode}\n{result.stdout}")
    reason = differs(result.stdout, wanted)
    if reason:
        raise Wrong(reason)
    shutil.rmtree(work)


def missing_headers(path):
    """Headers of the library that the example includes and this tree has not."""
    return [name for name in re.findall(r"^#include <(mimalloc[\w-]*\.h)>", path.read_text(encoding="utf-8"), re.M)
            if not (ROOT / "include" / name).exists()]


def install(build, prefix):
    shutil.rmtree(prefix, ignore_errors=True)
    subprocess.run(["cmake", "--install", str(build), "--prefix", str(prefix)], check=True, stdout=subprocess.DEVNULL)


def run_all(names, found, args):
    prefix, failures = args.work.resolve() / "prefix", 0
    install(args.build_dir, prefix)
    for name in names:
        if headers := missing_headers(found[name]):
            print(f"skip  {name}: the library has no {' '.join(headers)}")
            continue
        try:
            run_example(found[name], prefix, args.work.resolve() / name)
            print(f"ok    {name}", flush=True)
        except Wrong as wrong:
            failures += 1
            print(f"FAIL  {name}: {wrong}", flush=True)
    return 1 if failures else 0


def self_test():
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        (work / "examples/a").mkdir(parents=True)
        source = work / "examples/a/a.c"

        def outcome(text):
            source.write_text(text, encoding="utf-8")
            try:
                run_example(find(work / "examples")["a"], work, work / "run")
            except Wrong as wrong:
                return str(wrong).split("\n", maxsplit=1)[0]
            return "ok"
        good = "// It.\n//\n// Build and run:\n//   echo one 17\n//   echo two\n// Prints:\n//   one N\n//   t...\n#include <a.h>\n"
        expected = {
            good: "ok",
            good.replace("one N", "one 18"): "printed:",
            good.replace("//   t...\n", ""): "printed:",
            good.replace("echo two", "false"): "exit status 1",
            good.replace("Prints", "Says"): f"{work}/examples/a: 0 files say how to build and run it",
        }
        wrong = [text for text, what in expected.items() if outcome(text) != what]
        try:
            check_index("| [a](a/a.c) | it |\n", {"a", "b"})
            wrong.append("index")
        except Wrong:
            pass
    print(f"self-test: {len(wrong)} wrong", *wrong)
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--build-dir", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path)
    args = parser.parse_args()
    if args.self_test:
        return self_test()
    try:
        found = find(EXAMPLES)
        check_index((EXAMPLES / "README.md").read_text(encoding="utf-8"), set(found) | SCRIPTED_ELSEWHERE)
    except Wrong as wrong:
        print(f"FAIL  {wrong}")
        return 1
    if args.list:
        print("\n".join(found))
        return 0
    if not args.build_dir or not args.work or not set(args.names) <= set(found):
        parser.error(f"wanted: --build-dir, --work, and names among {' '.join(found)}")
    if not shutil.which("pkg-config"):
        print("skipped: pkg-config is not installed")
        return 77
    return run_all(args.names or found, found, args)


if __name__ == "__main__":
    sys.exit(main())
