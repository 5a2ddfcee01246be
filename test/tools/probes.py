#!/usr/bin/env python3
"""The probes for tracers: those of the library are those of the list in docs/design/tools.md.

  probes.py list --source S --build-dir B [--cxx]      builds the library of the tree S with and without probes, and holds the
                                                       notes of the one against the list; the other has none
  probes.py hit --source S --build-dir B --program P   with the library of `list`, preloaded under gdb into P, which is traced.c

Exit status 77: something is missing."""

import argparse
import errno
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from outcome import Skipped, exit_status, expect  # noqa: E402

def run(argv, timeout=600, **more):
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, errors="replace", timeout=timeout, **more)
    return done.returncode, done.stdout + done.stderr


def must_run(argv):
    status, out = run(argv)
    expect(status == 0, f"{' '.join(map(str, argv))}: status {status}\n{out[-3000:]}")
    return out


def need(tool):
    if not shutil.which(tool):
        raise Skipped(f"{tool} is not installed")


def library(options, name, *defines):
    """Builds a shared library of the tree with such options."""
    build = options.build_dir / f"probes-{name}"
    must_run([options.cmake, "-S", options.source, "-B", build, f"-DCMAKE_C_COMPILER={options.compiler}",
              f"-DCMAKE_CXX_COMPILER={options.cxx_compiler}", "-DCMAKE_BUILD_TYPE=Release",
              "-DMI_BUILD_TESTS=OFF", "-DMI_BUILD_STATIC=OFF", "-DMI_BUILD_OBJECT=OFF", *defines])
    must_run([options.cmake, "--build", build, "--target", "mimalloc"])
    return build / "libmimalloc.so"


def library_with_probes(options):
    status, _ = run([options.compiler, "-E", "-x", "c", "-"], input="#include <sys/sdt.h>\n")
    if status != 0:
        raise Skipped("there is no <sys/sdt.h>, which is in the Debian package systemtap-sdt-dev")
    if options.cxx:
        return library(options, "cxx", "-DMI_TRACK_USDT=ON", "-DMI_USE_CXX=ON")
    return library(options, "on", "-DMI_TRACK_USDT=ON")


def probes_of(path):
    """{name: {number of arguments}} of all places in a library."""
    found = {}
    for provider, name, arguments in re.findall(r"Provider: (\S+)\n\s+Name: (\S+)\n\s+Location: .*\n\s+Arguments: (.*)",
                                                must_run(["readelf", "-nW", path])):
        expect(provider == "mimalloc", f"the provider of {name} is {provider}")
        found.setdefault(name, set()).add(len(arguments.split()))
    return found


def probes_in_list(page):
    """The same of the rows `| `name` | `a`, `b` | when |` of the page."""
    section = re.search(r"^## Probes\n(.*?)(?=^## |\Z)", page.read_text(), re.MULTILINE | re.DOTALL)
    expect(section, f"{page} has no section of probes")
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*) \| [^|]*\S[^|]* \|$", section[1], re.MULTILINE)
    expect(len(rows) == len({name for name, _ in rows}), f"{page} lists a probe twice")
    return {name: {len(re.findall(r"`\w+`", arguments))} for name, arguments in rows}


def do_list(options):
    need("readelf")
    probes = probes_of(library_with_probes(options))
    listed = probes_in_list(options.source / "docs" / "design" / "tools.md")
    wrong = [f"{name}: {sorted(probes.get(name, ())) or 'no probe'} in the library, {sorted(listed.get(name, ())) or 'not there'} in the list"
             for name in sorted(set(probes) | set(listed)) if probes.get(name) != listed.get(name)]
    expect(not wrong, "numbers of arguments:\n" + "\n".join(wrong))
    expect(probes, "there are no probes")
    without = library(options, "off", "-DMI_TRACK_USDT=OFF")
    expect("stapsdt" not in must_run(["readelf", "-nSW", without]), "the library without probes has notes of some")
    print(f"{len(probes)} probes")


# ---- one that is hit ------------------------------------------------------------------------------------------------

# Name and format of what gdb prints of the arguments.
WATCHED = {"page_new": "%lu %lu %lu %lu", "thread_start": "%lu", "thread_exit": "%lu", "large_malloc": "%lu %lu",
           "large_free": "%lu %lu", "out_of_memory": "%lu", "error": "%ld %s", "refill": "%lu %lu %lu"}


def gdb_script(lib):
    lines = ["set breakpoint pending off", "set confirm off", "set pagination off", "set startup-with-shell off",
             "set debuginfod enabled off", f"set environment LD_PRELOAD {lib}", "break main", "run", "delete"]
    for name, form in WATCHED.items():
        arguments = "".join(f", $_probe_arg{i}" for i in range(form.count("%")))
        lines += [f"break -probe-stap mimalloc:{name}", "commands", "silent", f'printf "probe {name} {form}\\n"{arguments}', "continue",
                  "end"]
    return "\n".join([*lines, "continue", ""])


def do_hit(options):
    need("gdb")
    lib = library_with_probes(options)
    script = options.build_dir / "probes.gdb"
    script.write_text(gdb_script(lib))
    env = {k: v for k, v in os.environ.items() if not k.upper().startswith("MIMALLOC_") and k not in ("LD_PRELOAD", "DEBUGINFOD_URLS")}
    _, out = run(["gdb", "-nx", "-batch", "-x", script, options.program], timeout=200, env=env, stdin=subprocess.DEVNULL)
    if re.search(r"ptrace: Operation not permitted|Cannot trace|Could not trace the inferior", out):
        raise Skipped("gdb may not trace programs here")
    hits = {name: [] for name in WATCHED}
    for name, arguments in re.findall(r"^probe (\w+) (.*)$", out, re.MULTILINE):
        hits[name].append(arguments.split(maxsplit=1) if name == "error" else [int(a) for a in arguments.split()])
    pointers = {name: int(at, 16) for name, at in re.findall(r"^(large|aligned) 0x([0-9a-f]+)$", out, re.MULTILINE)}
    print({name: len(at) for name, at in hits.items()})

    def hit(name, *arguments):
        expect([*arguments] in [h[:len(arguments)] for h in hits[name]], f"{name} {arguments} was not hit\n{out[-4000:]}")

    expect(len(pointers) == 2, f"the program did not run\n{out[-4000:]}")
    hit("large_malloc", pointers["large"], 3000000)
    hit("large_malloc", pointers["aligned"], 5000000)
    hit("large_free", pointers["large"])
    hit("large_free", pointers["aligned"])
    hit("out_of_memory", 1 << 62)
    hit("error", str(errno.ENOMEM))
    sizes = [h[2] for h in hits["page_new"]]
    expect(any(700 <= size < 1000 for size in sizes), f"page_new: block sizes {sizes}")
    expect(all(h[1] % (64 << 10) < h[2] + (64 << 10) and h[3] >= 1 for h in hits["page_new"]), f"page_new: {hits['page_new']}")
    expect(any(h[2] > 0 for h in hits["refill"]), f"refill: {hits['refill']}")
    started = {h[0] for h in hits["thread_start"]}
    expect(len(started) >= 1 and started & {h[0] for h in hits["thread_exit"]}, f"threads: {hits['thread_start']} {hits['thread_exit']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["list", "hit"])
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--build-dir", type=pathlib.Path, required=True)
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--compiler", default="cc")
    parser.add_argument("--cxx-compiler", default="c++")
    parser.add_argument("--cxx", action="store_true")
    parser.add_argument("--program", type=pathlib.Path)
    options = parser.parse_args()
    tests = {"list": do_list, "hit": do_hit}
    return exit_status(lambda: tests[options.what](options))


sys.exit(main())
