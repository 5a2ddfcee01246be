#!/usr/bin/env python3
"""The library under tools that watch memory.

  run.py valgrind --program P [--preload L]        P counts the errors that memcheck sees itself (memcheck.c)
  run.py valgrind-own --program P                  P is one of our tests, and memcheck has nothing to say about it
  run.py valgrind-programs --lib L [--inject I] [NAME ...]      programs with L preloaded: right, and without an error of memcheck;
                                                   with I, that has bugs, those are reported
  run.py valgrind-untracked --lib L [NAME ...]     the same with a library that knows nothing of valgrind: it runs
  run.py reports --tool T --source S --program P [--preload L]    what the tool says about each bug of S, and nothing else

Exit status 77: a tool is missing."""

import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from outcome import Failed, Skipped, exit_status, expect  # noqa: E402

# Else valgrind puts its own functions in the place of our malloc.
OURS = "--soname-synonyms=somalloc=nouserintercepts"
STATUS_OF_ERRORS = 99


class Result:
    def __init__(self, status, out, err, log):
        self.status, self.out, self.err, self.log = status, out, err, log


def run(argv, env=None, timeout=600, log=None, cwd=None, stdin=""):
    """Status, output and, if there is one, the log of the tool."""
    try:
        done = subprocess.run([str(a) for a in argv], env=env, timeout=timeout, capture_output=True, cwd=cwd,
                              input=stdin.encode())
    except subprocess.TimeoutExpired:
        raise Failed(f"{argv}: still running after {timeout} s") from None
    text = ""
    if log:
        for path in sorted(log.parent.glob(log.name + "*")):
            text += path.read_text(errors="replace")
            path.unlink()
    return Result(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"), text)


def environment(preload=None, **more):
    env = {k: v for k, v in os.environ.items() if not k.upper().startswith("MIMALLOC_") and k != "LD_PRELOAD"}
    if preload:
        env["LD_PRELOAD"] = str(preload)
    env.update(more)
    return env


def valgrind(argv, preload=None, options=(), ours=True, work=None, env=None, **more):
    if not shutil.which("valgrind"):
        raise Skipped("valgrind is not installed")
    with tempfile.TemporaryDirectory() as logs:
        log = pathlib.Path(logs) / "log"
        command = ["valgrind", f"--log-file={log}.%p", f"--error-exitcode={STATUS_OF_ERRORS}", "--error-limit=no"]
        return run([*command, *([OURS] if ours else []), *options, *argv], environment(preload, **(env or {})), log=log,
                   cwd=work, **more)


def errors_in(log):
    """Errors of all processes in logs of memcheck."""
    return sum(int(n.replace(",", "")) for n in re.findall(r"ERROR SUMMARY: ([0-9,]+) errors", log))


def places_of_errors(log):
    """What is wrong, and where: {(kind, innermost function of the program)}."""
    found = re.findall(r"^==\d+== (Conditional|Use of|Invalid|Syscall|Source|Mismatched|Argument)[^\n]*\n((?:==\d+==    [^\n]*\n)+)", log,
                       re.MULTILINE)
    places = set()
    for kind, stack in found:
        frames = re.findall(r"(?:at|by) (0x[0-9A-F]+): (.*)", stack)
        frames = [(address, text) for address, text in frames if "vgpreload" not in text and "mimalloc" not in text]
        address, text = frames[0] if frames else ("", stack)
        places.add((kind, address if text.startswith("???") else text))
    return places


# ---- our own programs -----------------------------------------------------------------------------------------------


def do_valgrind(options):
    result = valgrind([options.program], options.preload, ["--error-exitcode=0"])
    print(result.err[-4000:])
    expect(result.status == 0, f"status {result.status}\n{result.log[-2000:]}")
    expect(re.search(r"^\d{3,} checks, 0 failed$", result.err, re.MULTILINE), "it did not check anything")


def do_valgrind_own(options):
    result = valgrind([options.program])
    expect(errors_in(result.log) == 0, f"memcheck reports errors\n{result.log[:6000]}")
    expect(result.status == 0, f"status {result.status}\n{result.err[-2000:]}\n{result.log[-2000:]}")
    expect("total heap usage: 0 allocs" not in result.log and "total heap usage" in result.log, "memcheck saw no blocks")


# ---- reports --------------------------------------------------------------------------------------------------------


def expected_reports(tool, source):
    """{bug: regular expression} from the comments in a source."""
    found = {}
    comment = None
    for line in (HERE / source).read_text().splitlines():
        match = re.match(r"// (\w+): (.*)$", line)
        if match and match[1] == tool:
            comment = match[2]
        match = re.match(r"BUG void (\w+)\(", line)
        if match:
            if comment:
                found[match[1]] = comment
            comment = None
    return found


def report_of(tool, options, name):
    """What the tool says in one line, the number of its reports, the exit status, and which one a report leads to."""
    if tool == "memcheck":
        result = valgrind([options.program, name], options.preload, ["--leak-check=full"])
        text, seen, status = result.log, errors_in(result.log), STATUS_OF_ERRORS
        expect("total heap usage: 0 allocs" not in text, f"{name}: memcheck saw no blocks")
    else:
        result = run([options.program, name], environment(options.preload, ASAN_OPTIONS=f"exitcode={STATUS_OF_ERRORS}"))
        text = result.err
        if "LeakSanitizer has encountered a fatal error" in text:
            raise Skipped("the leak sanitizer does not work here: it may not trace its own process")
        ours = text.count("mimalloc: error")
        seen = text.count("ERROR: AddressSanitizer") + text.count("ERROR: LeakSanitizer") + ours
        status = -signal.SIGABRT if ours else STATUS_OF_ERRORS
    text = " ".join(re.sub(r"^==\d+==", "", line).strip() for line in text.splitlines())
    return text, seen, result.status, status


def do_reports(options):
    listed = run([options.program, "list"], environment(options.preload)).out.split()
    reports = {name: pattern for name, pattern in expected_reports(options.tool, options.source).items() if name in listed}
    expect(len(reports) >= 6 and "nothing" in reports, f"{options.source}: {reports} for {options.tool}, {listed} in the program")
    wrong = []
    for name, pattern in reports.items():
        text, seen, status, status_of_errors = report_of(options.tool, options, name)
        if pattern == "nothing":
            ok = seen == 0 and status == 0
        else:
            ok = re.search(pattern, text) is not None and seen == 1 and status == status_of_errors
        print(f"{'ok    ' if ok else 'FAILED'} {name}: {seen} report{'' if seen == 1 else 's'}, status {status}")
        if not ok:
            wrong.append(f"{name}: expected {pattern}\ngot: {text[:3000]}")
    expect(not wrong, "\n".join(wrong))


# ---- other people's programs ----------------------------------------------------------------------------------------

PYTHON = ["/usr/bin/python3", "-c", "import json, re, threading\n"
          "t = {i: [str(j) * (j % 7) for j in range(i % 20)] for i in range(300)}\n"
          "s = json.dumps(t); print(len(s), json.loads(s)['19'] == t[19], len(re.findall(r'[0-9]+', s)))\n"
          "ts = [threading.Thread(target=lambda: [bytes(n) for n in range(500)]) for _ in range(3)]\n"
          "[x.start() for x in ts]; [x.join() for x in ts]"]
PERL = ["perl", "-e", "my %h; $h{$_ % 700} .= 'x' x ($_ % 50) for 1..8000; my @k = sort { $a <=> $b } keys %h;"
        "print length(join ',', map { \"$_=$h{$_}\" } @k), \"\\n\";"]
AWK = ["awk", "BEGIN { for (i = 0; i < 5000; i++) a[i % 300] = a[i % 300] i; n = 0; for (k in a) n += length(a[k]); print n }"]
LUA = ["lua5.4", "-e", "local t = {} for i = 1, 20000 do t[i % 500 + 1] = ('x'):rep(i % 60) .. i end print(#table.concat(t))"]
SQL = ("create table t(a integer primary key, b text); with recursive n(i) as (select 1 union all select i + 1 from n"
       " where i < 2000) insert into t select i, hex(i * 7919) || printf('%.50c', 'x') from n; create index x on t(b);"
       " select count(*), sum(length(b)), max(b) from t where b > '3'; select group_concat(a) from t where a % 97 = 0;")
CMAKE = """
set(words)
foreach(i RANGE 400)
  math(EXPR n "(${i} * 7919) % 503")
  string(REPEAT "x${n}" 3 word)
  list(APPEND words "${word}")
endforeach()
list(REMOVE_DUPLICATES words)
list(SORT words)
string(REGEX REPLACE "x([0-9])" "\\\\1;" numbers "${words}")
list(LENGTH numbers n)
string(SHA256 sum "${numbers}")
file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/words.txt" "${numbers}")
file(STRINGS "${CMAKE_CURRENT_BINARY_DIR}/words.txt" lines)
string(JSON name GET [=[{"a": [1, {"b": "c"}]}]=] a 1 b)
message(STATUS "${n} ${sum} ${name}")
"""
C = "#include <stdio.h>\nint main(void) { for (int i = 0; i < 9; i++) printf(\"%d\\n\", i * i); return 0; }\n"

# What memcheck says about inject.c.  Of freed blocks it finds the one that was longest ago at an address.
INJECTED = (r"Invalid write of size 1 at .*: injected_overflow .* is 0 bytes after a (recently re-allocated )?block of size 100 alloc'd",
            r"Invalid read of size 1 at .*: injected_use_after_free .* is \d+ bytes inside a (recently re-allocated )?block of size \d+ free'd",
            r"12,345 bytes in 1 blocks are definitely lost in loss record \d+ of \d+ at (?:(?! lost in ).)*: injected_leak")

# name: (argv, what it reads, environment).  In an empty directory with the files source.c and script.cmake, which is a git repository.
PROGRAMS = {
    "perl": (PERL, "", {}),
    "python3": (PYTHON, "", {"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"}),
    "cmake": (["cmake", "-P", "script.cmake"], "", {}),
    "sqlite3": (["sqlite3", ":memory:", SQL], "", {}),
    "git": (["git", "log", "--stat", "-p", "--format=%s"], "", {}),
    "gcc": (["gcc", "-O2", "-fno-lto", "-S", "-o", "-", "source.c"], "", {}),
    "awk": (AWK, "", {}),
    "lua5.4": (LUA, "", {}),
    "bash": (["bash", "-c", "a=(); for ((i = 0; i < 2000; i++)); do a+=(\"$i$i\"); done; b=${a[*]}; echo ${#b} ${a[77]}"], "", {}),
    "sort": (["sort", "--parallel=2", "-n"], "\n".join(str(i * 7919 % 5003) for i in range(5000)), {}),
    "sed": (["sed", "-E", "s/([0-9])([a-z]+)/\\2\\1/g; $!N; P; D"], "12ab 3cd\n" * 300, {}),
    "make": (["make", "-s", "-f", "-", "all"],
             "all: a b\n\t@echo $^\na b: c\n\t@echo $@\nc:\n\t@echo $(sort $(shell seq 1 200))\n", {}),
    "xz": (["sh", "-c", "xz -c | xz -dc | cksum"], "some text " * 5000, {}),
    "jq": (["jq", "-n", "[range(600) | {a: ., b: (tostring * (. % 5))}] | map(select(.a % 3 == 0)) | tojson | length"], "", {}),
    "bc": (["bc", "-q"], "scale = 200\nsqrt(2)\n2 ^ 900 % 1000003\n", {}),
    "openssl": (["openssl", "dgst", "-sha256"], "x" * 100000, {}),
}


def prepare(work):
    (work / "source.c").write_text(C)
    (work / "script.cmake").write_text(CMAKE)
    author = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    if shutil.which("git"):
        for argv in (["init", "-q"], ["add", "source.c"], ["commit", "-q", "-m", "one", "--date=2020-01-01T00:00:00Z"]):
            run(["git", *author, *argv], environment(HOME=str(work), GIT_CONFIG_NOSYSTEM="1"), cwd=work)


def run_programs(options, check):
    names = options.names or list(PROGRAMS)
    wrong, n_done = [], 0
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        prepare(work)
        for name in names:
            argv, stdin, env = PROGRAMS[name]
            env = {**env, "HOME": str(work), "LANG": "C.UTF-8", "GIT_CONFIG_NOSYSTEM": "1"}
            if not shutil.which(argv[0]):
                print(f"SKIP {name}: not installed")
                continue
            plain = run(argv, environment(**env), stdin=stdin, cwd=work)
            try:
                check(options, name, argv, stdin, env, work, plain)
                n_done += 1
                print(f"ok     {name}", flush=True)
            except Failed as error:
                wrong.append(f"{name}: {error}")
                print(f"FAILED {name}", flush=True)
    expect(not wrong, "\n".join(wrong))
    expect(n_done > 0, "none of the programs is installed")
    print(f"{n_done} programs")


def same_output(result, plain):
    expect(result.status == plain.status, f"status {result.status}, not {plain.status}\n{result.err[-2000:]}\n{result.log[-3000:]}")
    expect(result.out == plain.out, f"another output: {result.out[:300]!r}, not {plain.out[:300]!r}")


def check_injected(options, argv, stdin, env, work):
    """What is wrong in a process is seen beside all that is right."""
    result = valgrind(argv, f"{options.lib} {options.inject}", ["--leak-check=full", "--error-exitcode=0"], env=env, stdin=stdin,
                      work=work)
    text = " ".join(re.sub(r"^==\d+==", "", line).strip() for line in result.log.splitlines())
    for pattern in INJECTED:
        expect(re.search(pattern, text), f"memcheck does not say {pattern}\n{result.log[-6000:]}")


def check_tracked(options, name, argv, stdin, env, work, plain):
    if options.inject:
        check_injected(options, argv, stdin, env, work)
    result = valgrind(argv, options.lib, ["--leak-check=no", "--trace-children=yes", "--error-exitcode=0"], env=env, stdin=stdin,
                      work=work)
    same_output(result, plain)
    n = errors_in(result.log)
    usage = [int(m.replace(",", "")) for m in re.findall(r"total heap usage: ([0-9,]+) allocs", result.log)]
    expect(sum(usage) >= 20, f"memcheck saw {sum(usage)} blocks")
    if n == 0:
        return
    # Some have errors with any allocator.
    own = valgrind(argv, None, ["--leak-check=no", "--trace-children=yes", "--error-exitcode=0"], env=env, stdin=stdin, work=work)
    ours = places_of_errors(result.log) - places_of_errors(own.log)
    print(f"note   {name}: {n} errors, {errors_in(own.log)} without the library; {len(ours)} places are new")
    expect(len(places_of_errors(result.log)) > 0 and not ours, f"{n} errors\n{ours}\n{result.log[:4000]}")


def check_untracked(options, name, argv, stdin, env, work, plain):
    for ours in (True, False):
        result = valgrind(argv, options.lib, ["--leak-check=no", "--error-exitcode=0"], ours=ours, stdin=stdin, work=work,
                          env={**env, "MIMALLOC_SHOW_STATS": "1"})
        same_output(result, plain)
        served = sum(int(n.replace(",", "")) for n in re.findall(r"^\s*pages\s*:\s+\S+\s+([0-9]+)\b", result.err, re.MULTILINE))
        expect(not ours or served > 0, f"the library had no pages\n{result.err[-1500:]}")
        expect("unhandled syscall" not in result.log, f"a system call that valgrind does not know\n{result.log[:2000]}")
        # It takes what it was not told of for memory like any other, and finds nothing wrong with what is ours.
        expect(errors_in(result.log) == 0, f"{errors_in(result.log)} errors\n{result.log[:4000]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["valgrind", "valgrind-own", "valgrind-programs", "valgrind-untracked", "reports"])
    parser.add_argument("--program", type=pathlib.Path)
    parser.add_argument("--preload", type=pathlib.Path)
    parser.add_argument("--lib", type=pathlib.Path)
    parser.add_argument("--source", default="bugs.c")
    parser.add_argument("--inject", type=pathlib.Path, help="a library with bugs")
    parser.add_argument("--tool", choices=["memcheck", "asan"])
    parser.add_argument("names", nargs="*")
    options = parser.parse_intermixed_args() # names come after options
    tests = {"valgrind": do_valgrind, "valgrind-own": do_valgrind_own, "reports": do_reports,
             "valgrind-programs": lambda o: run_programs(o, check_tracked),
             "valgrind-untracked": lambda o: run_programs(o, check_untracked)}
    return exit_status(lambda: tests[options.what](options))


sys.exit(main())
