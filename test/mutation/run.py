#!/usr/bin/env python3
"""Changes the allocator in one place at a time, and finds out whether the tests notice.

  test/mutation/run.py                      100 mutants of src/page, src/heap and src/arena (30 minutes on two processors)
  test/mutation/run.py --seed 2             100 others
  test/mutation/run.py --only heap/pool.c   mutants of these files only; --count says how many
  test/mutation/run.py --known              those of test/mutation/known.toml, each of which a test must kill
  test/mutation/run.py --list               the mutants, without running anything
  test/mutation/run.py --self-test          what this script decides, without a build

A mutant is a source file with one line changed: a condition negated, a comparison or a constant off by one, a statement left
out.  The Python package universalmutator makes them; it is installed from PyPI into build/venv-mutation.  Lines are chosen by the
seed and by what they say, so that the choice stays the same when other lines change.  Assertions, probes and includes are left
alone.  A mutant that compiles to the same code is none.

Each mutant is linked with tests of the build in build/mutation, which has all checks and no sanitizers: first those that
test/README.md names for the file, then the other quick ones.  The first that fails or hangs has killed it.  Those that are alive
at the end are listed, except those in test/mutation/equivalent.toml, which no test can tell from the original."""

import argparse
import collections
import concurrent.futures
import contextlib
import hashlib
import io
import json
import os
import pathlib
import queue
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build" / "mutation"
VENV = ROOT / "build" / "venv-mutation"
PACKAGE = "universalmutator==1.14.1"
RULES = ["universal.rules", "c.rules", "c_like.rules"]
LAYERS = ("page", "arena", "heap")
KINDS = ("unit", "api", "modes", "fault", "fuzz", "stress")

# Not mutated: what is at the level of the file, what only checks or reports, declarations, and braces.
LEFT_ALONE = re.compile(r"^\S|^\s*(//|\}|mi_static_assert|typedef|struct|extern)|mi_assert|MI_PROBE|_mi_message|^[^=()]*;")
TRIES = 12          # mutants of a line until one compiles to other code
SECONDS_OWN = 30    # of a processor: a test of the file's row in test/README.md, if it takes no longer without mutants
SECONDS_ANY = 5     # any other unit test
SECONDS_HANG = 240  # by the clock, without mutants: on a loaded machine a test takes many times as long
ALWAYS = ("fuzz-fuzz-model", "stress-stress", "stress-heaps", "api-basic", "api-drift", "modes-producer-consumer")
# What checked builds have not: these are tested in a release build, for which the tests are compiled, too.
PLAIN = ("heap/gaps.c", "heap/gaps.h", "heap/gap_list.c", "heap/gap_list.h", "heap/gap_map.c", "heap/gap_map.h", "heap/hollow.c",
         "heap/sparse.c", "heap/sparse.h")
PLAIN_TESTS = ("api-basic", "api-drift", "stress-stress", "api-visit")
NOT_WITH_HEADERS = "unit-option"  # fails where the library is one source, as it is compiled for headers
MEMORY_MAX = 6 << 30


class Mutant:
    def __init__(self, file, number, before, after):
        self.file, self.number, self.before, self.after = file, number, before, after
        self.killer, self.tests, self.reason = "", 0, ""

    @property
    def layer(self):
        return self.file.split("/")[0]

    def key(self):
        return self.file, self.before.strip(), self.after.strip()

    def __str__(self):
        return f"src/{self.file}:{self.number}\n    - {self.before.strip()}\n    + {self.after.strip()}"


def rank(*parts):
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()


# ---- choosing mutants -------------------------------------------------------------------------------------------------

def load_mutator():
    if not (VENV / "bin/python").exists():
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
        subprocess.run([str(VENV / "bin/pip"), "install", "--quiet", "--no-deps", PACKAGE], check=True)
    sys.path.append(str(next((VENV / "lib").glob("python3*/site-packages"))))
    from universalmutator import mutator  # pylint: disable=import-error,import-outside-toplevel
    return mutator


def mutants_of(mutator, file, text):
    """{line number: [text of the line, mutated]}; one line in, one line out."""
    lines = text.splitlines(keepends=True)
    with contextlib.redirect_stdout(io.StringIO()):  # it says what it does
        found = mutator.mutants_regexp(lines, ruleFiles=RULES, ignorePatterns=[])
    by_line = collections.defaultdict(list)
    for number, after, *_ in found:
        before = lines[number - 1]
        if not LEFT_ALONE.search(before) and after.count("\n") == 1 and after != before:
            by_line[number].append(after)
    return {number: sorted(set(afters)) for number, afters in by_line.items()}


def candidates(mutator, seed, files):
    """All lines that may be mutated, in the order of the seed: [(file, number, line, [mutated line])]."""
    result = []
    for file in files:
        text = (ROOT / "src" / file).read_text(encoding="utf-8")
        lines, seen = text.splitlines(keepends=True), collections.Counter()
        for number, afters in sorted(mutants_of(mutator, file, text).items()):
            before = lines[number - 1]
            seen[before] += 1
            afters.sort(key=lambda after, before=before: rank(seed, file, before.strip(), after))
            result.append((rank(seed, file, before.strip(), seen[before]), file, number, before, afters))
    return [entry[1:] for entry in sorted(result)]


def as_plain(words):
    """The words of a compiler for a release build."""
    return ["-DMI_DEBUG=0" if word == "-DMI_DEBUG=3" else word for word in words] + ["-DNDEBUG"]


def unit_of(file):
    """The source that is compiled; the whole library for headers, and where its layout is another than that of the tests' library."""
    return file if file.endswith(".c") and file not in PLAIN else "static.c"


# ---- the build --------------------------------------------------------------------------------------------------------

class Build:
    """Of the tests, without mutants; and what compiles a source and links a test."""

    def __init__(self, jobs):
        configure = ["cmake", "-S", ".", "-B", str(BUILD), "-G", "Unix Makefiles", "--log-level=ERROR", "-DCMAKE_BUILD_TYPE=Debug",
                     "-DCMAKE_C_FLAGS_DEBUG=-O1", "-DCMAKE_CXX_FLAGS_DEBUG=-O1", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
                     "-DMI_BUILD_TESTS=ON", "-DMI_BUILD_SHARED=OFF", "-DMI_BUILD_OBJECT=OFF", "-DMI_OVERRIDE=OFF",
                     f"-DMI_TEST_KINDS={';'.join(KINDS)}"]
        subprocess.run(configure, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["cmake", "--build", str(BUILD), "--parallel", str(jobs)], check=True, stdout=subprocess.DEVNULL)
        shown = subprocess.run(["ctest", "--test-dir", str(BUILD), "--show-only=json-v1"], check=True, capture_output=True).stdout
        self.links = {}  # of a test: the words of the command that links it
        for test in json.loads(shown)["tests"]:
            name = test["name"]
            link = BUILD / f"test/CMakeFiles/test-{name}.dir/link.txt"
            if link.exists():
                self.links[name] = shlex.split(link.read_text(encoding="utf-8"))
        commands = json.loads((BUILD / "compile_commands.json").read_text(encoding="utf-8"))
        command = next(each for each in commands if "mimalloc-test" in each["command"] and each["file"].endswith("/heap/pool.c"))
        words = shlex.split(command["command"])
        self.directory = command["directory"]
        self.compile = [word for word in words[:words.index("-o")] if not word.startswith(("-W", "-g"))]
        self.sources = {}  # of a test, by its object file as links name it: the words that compile it
        for each in commands:
            words = shlex.split(each["command"])
            if "-o" in words and each["directory"] == str(BUILD / "test"):
                self.sources[words[words.index("-o") + 1]] = words

    def object(self, tree, file, out):
        """Compiles a source of this copy of src/; a header with all sources.  False: it is not C."""
        source = tree / "src" / unit_of(file)
        words = [word.replace(str(ROOT / "src"), str(tree / "src")) for word in self.compile]
        if file in PLAIN:
            words = as_plain(words)
        try:
            return subprocess.run([*words, "-w", "-o", str(out), "-c", str(source)], cwd=self.directory, check=False, timeout=600,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def test_object(self, tree, word, out, is_plain):
        """The object file, compiled with the headers of this copy of src/, if a word of a link is one of the test's own and that compiles."""
        if word not in self.sources:
            return word
        words = [each.replace(str(ROOT / "src"), str(tree / "src")) for each in self.sources[word]]
        if is_plain:
            words = as_plain(words)
        words[words.index("-o") + 1] = str(out)
        done = subprocess.run([*words, "-w"], cwd=BUILD / "test", check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return str(out) if done.returncode == 0 else word

    def link(self, name, obj, out, tree=None, is_plain=False):
        """The test with the object code before the library's; with a tree, its own sources are compiled with its headers."""
        words = self.links[name]
        if tree is not None:
            words = [self.test_object(tree, word, out.with_name(f"own-{i}.o"), is_plain) for i, word in enumerate(words)]
        place = next(i for i, word in enumerate(words) if word.endswith("libmimalloc-test.a"))
        words = [*words[:place], str(obj), *words[place:]]
        words[words.index("-o") + 1] = str(out)
        return subprocess.run(words, cwd=BUILD / "test", check=False, stderr=subprocess.DEVNULL).returncode == 0


def memory_of(pid):
    try:
        return int(pathlib.Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def run_test(program, seconds):
    """What is wrong, or "" if the test passes or skips itself; and how long it took a processor."""
    process = subprocess.Popen([str(program)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
                               cwd=program.parent)
    wrong, took, end = "", 0.0, time.monotonic() + seconds
    while not wrong:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid != 0:
            process.returncode = os.waitstatus_to_exitcode(status)
            wrong = "" if process.returncode in (0, 77) else f"exit status {process.returncode}"
            took = usage.ru_utime + usage.ru_stime
            break
        if time.monotonic() > end:
            wrong = "it hangs"
        elif memory_of(process.pid) > MEMORY_MAX:
            wrong = "it takes too much memory"
        time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return wrong, took


def tests_named(file):
    """Those that test/README.md names for the file, and for the source beside a header."""
    text = (ROOT / "test/README.md").read_text(encoding="utf-8")
    row = re.search(rf"^\| `src/{re.escape(re.sub(r'[.]h$', '.c', file))}` \| (.+) \|$", text, re.M)
    return re.findall(r"`(\w+-[\w-]+)`", row[1]) if row else []


class Tests:
    """How long each takes without a mutant: by the clock, and of a processor."""

    def __init__(self, build, jobs):
        self.seconds, self.work = {}, {}
        note = BUILD / "seconds.json"
        known = json.loads(note.read_text(encoding="utf-8")) if note.exists() else {}
        todo = [name for name in build.links if name not in known]
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            known.update(zip(todo, pool.map(self.measure, todo)))
        for name in build.links:
            self.seconds[name], self.work[name] = known[name]
        note.write_text(json.dumps(known, indent=1), encoding="utf-8")

    @staticmethod
    def measure(name):
        start = time.monotonic()
        wrong, work = run_test(BUILD / "test" / f"test-{name}", SECONDS_HANG)
        if wrong:
            print(f"{name} is not used: without a mutant {wrong}", flush=True)
        return time.monotonic() - start, 1e9 if wrong else work

    def for_file(self, file):
        own = [name for name in tests_named(file) if self.work.get(name, 1e9) <= SECONDS_OWN]
        if file in PLAIN:
            return [*own, *(name for name in PLAIN_TESTS if name not in own)]
        rest = [name for name, work in self.work.items() if name not in own and
                (work <= SECONDS_ANY and name.startswith("unit-") or work <= SECONDS_OWN and name in ALWAYS)]
        if file.endswith(".h"):
            rest = [name for name in rest if name != NOT_WITH_HEADERS]
        return [*sorted(own, key=self.seconds.get), *sorted(rest, key=self.seconds.get)]


# ---- mutants under test -------------------------------------------------------------------------------------------------

class Place:
    """A copy of the sources for one thread of this script, and the object code of files that are not mutated."""

    def __init__(self, build, number):
        self.build, self.root = build, BUILD / f"place-{number}"
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.copytree(ROOT / "src", self.root / "src")
        shutil.copytree(ROOT / "include", self.root / "include")
        self.plain, self.object = {}, self.root / "mutant.o"

    def plain_object(self, file):
        unit = unit_of(file), file in PLAIN
        if unit not in self.plain:
            if not self.build.object(self.root, file, self.object):
                sys.exit(f"src/{file} does not compile")
            self.plain[unit] = self.object.read_bytes()
        return self.plain[unit]

    @contextlib.contextmanager
    def mutated(self, mutant):
        """The copy has the mutant meanwhile."""
        path = self.root / "src" / mutant.file
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines(keepends=True)
        lines[mutant.number - 1] = mutant.after
        path.write_text("".join(lines), encoding="utf-8")
        try:
            yield
        finally:
            path.write_text(text, encoding="utf-8")

    def make(self, mutant):
        """The mutant's object code, if there is any and it is another."""
        plain = self.plain_object(mutant.file)
        with self.mutated(mutant):
            made = self.build.object(self.root, mutant.file, self.object)
        return made and self.object.read_bytes() != plain and self.build.link(ALWAYS[0], self.object, self.root / "test")

    def link(self, mutant, name):
        """Tests have inline functions of headers, and the layout of a release, in their own object code."""
        program, is_plain = self.root / "test", mutant.file in PLAIN
        if not mutant.file.endswith(".h") and not is_plain:
            return self.build.link(name, self.object, program)
        with self.mutated(mutant):
            return self.build.link(name, self.object, program, self.root, is_plain)

    def first(self, file, number, before, afters):
        for after in afters[:TRIES]:
            mutant = Mutant(file, number, before, after)
            if self.make(mutant):
                return mutant
        return None

    def kill(self, mutant, tests):
        program = self.root / "test"
        for name in tests.for_file(mutant.file):
            self.link(mutant, name)
            mutant.tests += 1
            wrong, _ = run_test(program, max(30, 6 * tests.seconds[name]))
            if wrong:
                mutant.killer = f"{name}: {wrong}"
                return


def noted(name):
    with open(ROOT / "test/mutation" / name, "rb") as file:
        return tomllib.load(file).get("mutant", [])


def equivalents():
    return {(each["file"], each["before"], each["after"]): each["reason"] for each in noted("equivalent.toml")}


def run_known(args):
    """True if a mutant of known.toml is alive after the test that is named."""
    build, n_alive = Build(args.jobs), 0
    place = Place(build, "known")
    for each in noted("known.toml"):
        number = lines_of(each["file"]).index(each["before"]) + 1
        mutant = Mutant(each["file"], number, each["before"], each["after"] + "\n")
        wrong = ""
        if place.make(mutant) and place.link(mutant, each["test"]):
            wrong, _ = run_test(place.root / "test", SECONDS_HANG)
        n_alive += not wrong
        print(f"{each['test'] + ': ' + wrong if wrong else 'ALIVE'}: {mutant}\n    {each['reason']}", flush=True)
    print(f"{len(noted('known.toml'))} mutants, {n_alive} alive")
    return n_alive > 0


def shares(lines, count):
    """How many mutants of each layer: by its lines."""
    total = sum(lines.values())
    return {layer: round(count * n / total) for layer, n in lines.items()}


def run(args, entries, wanted):
    build = Build(args.jobs)
    tests = Tests(build, args.jobs)
    known, places = equivalents(), queue.SimpleQueue()
    for number in range(args.jobs):
        places.put(Place(build, number))

    def one(entry):
        place = places.get()
        try:
            mutant = place.first(*entry)
            if mutant is not None:
                mutant.reason = known.get(mutant.key(), "")
                if not mutant.reason:
                    place.kill(mutant, tests)
                print(f"{'equivalent' if mutant.reason else mutant.killer or 'ALIVE'}: {mutant}", flush=True)
            return mutant
        finally:
            places.put(place)

    mutants = []
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for layer, n in wanted.items():
            mine = [entry for entry in entries if entry[0].startswith(layer + "/")]
            while n > 0 and mine:
                found = [mutant for mutant in pool.map(one, mine[:n]) if mutant is not None]
                mutants += found
                mine, n = mine[n:], n - len(found)
    return mutants


def report(mutants):
    files = sorted({mutant.file for mutant in mutants})
    print(f"\n{'':<28}{'mutants':>8}{'killed':>8}{'equivalent':>12}{'alive':>7}")
    for name in [*files, *LAYERS, "all"]:
        mine = [m for m in mutants if name in (m.file, m.layer, "all")]
        if mine:
            n_killed, n_same = sum(bool(m.killer) for m in mine), sum(bool(m.reason) for m in mine)
            print(f"{name:<28}{len(mine):>8}{n_killed:>8}{n_same:>12}{len(mine) - n_killed - n_same:>7}")
    for mutant in mutants:
        if not mutant.killer and not mutant.reason:
            print(f"ALIVE after {mutant.tests} tests: {mutant}")


def lines_of(file):
    return [line.strip() for line in (ROOT / "src" / file).read_text(encoding="utf-8").splitlines()]


def self_test():
    wrong = [what for what, holds in {
        "an assertion is left alone": LEFT_ALONE.search("  mi_assert(a < b);"),
        "a condition is not": not LEFT_ALONE.search("  if (a < b) return;"),
        "a call is not": not LEFT_ALONE.search("  pool_unlink(pool, page);"),
        "a field is left alone": LEFT_ALONE.search("  uint32_t count; // of blocks"),
        "the shares are those of the lines": shares({"page": 1, "heap": 3}, 100) == {"page": 25, "heap": 75},
        "a header has the tests of its source": tests_named("heap/pool.h") == tests_named("heap/pool.c") != [],
        "a program that fails is killed": run_test(pathlib.Path("/bin/false"), 60)[0] != "",
        "a program that passes is not": run_test(pathlib.Path("/bin/true"), 60)[0] == "",
        "each equivalent has a reason": all(equivalents().values()),
        "each equivalent's line exists": all(before in lines_of(file) for file, before, _ in equivalents()),
        "so does that of each known one": all(lines_of(each["file"]).count(each["before"]) == 1 for each in noted("known.toml")),
    }.items() if not holds]
    print("\n".join(f"self-test: {what}: NO" for what in wrong) or "self-test: passed")
    return bool(wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--known", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    if args.self_test:
        return self_test()
    if args.known:
        return run_known(args)
    paths = [path for layer in LAYERS for path in (ROOT / "src" / layer).glob("*.[ch]")]
    files = [file for file in sorted(path.relative_to(ROOT / "src").as_posix() for path in paths) if not args.only or file in args.only]
    entries = candidates(load_mutator(), args.seed, files)
    if args.list:
        for file, number, before, afters in entries[:args.count]:
            print(Mutant(file, number, before, afters[0]))
        return 0
    found = collections.Counter(entry[0].split("/")[0] for entry in entries)
    lines = {layer: found[layer] for layer in LAYERS if found[layer]}
    start = time.monotonic()
    report(run(args, entries, shares(lines, args.count)))
    print(f"{(time.monotonic() - start) / 60:.0f} minutes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
