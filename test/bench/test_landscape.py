#!/usr/bin/env python3
"""The landscape of bench/suite: what is read of callgrind, what is counted, how it is compared, and the command.

Needs no packages. Run with build/bench-venv/bin/python it also runs the command."""

import contextlib
import importlib.util
import io
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

if sys.version_info < (3, 11):
    print("SKIP bench-landscape: needs Python 3.11")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "test/golden")]

import landscape as golden  # noqa: E402
from suite import callgrind, counting, landscape, landscape_page, results  # noqa: E402
from suite.cost import Failure  # noqa: E402

CC = shutil.which("cc")
CAN_COUNT = CC and sys.platform == "linux" and platform.machine() == "x86_64" and platform.libc_ver()[0] == "glibc"
HEADER = pathlib.Path("/usr/include/valgrind/callgrind.h")
HAS_VALGRIND = shutil.which("valgrind") and shutil.which("objdump") and HEADER.exists()
HAS_PACKAGES = all(importlib.util.find_spec(name) for name in ("click", "jinja2", "matplotlib", "rich"))


def section(**counts):
    """Patterns `lone` and `grow`, sizes 64 and 4096: instructions of each allocator in that order."""
    made = landscape.Landscape("2026-01-02 03:04+00:00", {"CPU": "some"}, {name: "" for name in counts},
                               {name: "callgrind" for name in counts}, [64, 4096], ["lone", "grow"], is_complete=True,
                               commit="c" * 40)
    for name, values in counts.items():
        for cell, value in zip(made.cells(), values, strict=True):
            made.keep("instructions", name, *cell, value)
            for kind in ("faults", "calls"):
                made.keep(kind, name, *cell, 0.0)
    return made


class Cells(unittest.TestCase):
    def test_sizes(self):
        for size in landscape.SIZES:
            self.assertEqual(landscape.size_from(landscape.size_text(size)), size)
        self.assertEqual((landscape.SIZES[0], landscape.SIZES[-1], len(landscape.SIZES)), (8, 4 << 20, 20))
        self.assertEqual([landscape.size_from(text) for text in ("24", "4k", "64M")], [24, 4096, 64 << 20])
        for text in ("", "K", "3", "-4", "4.5K", "65M", "4KiB", "\u0664"):
            self.assertIsNone(landscape.size_from(text), text)

    def test_sizes_that_are_rounded_up(self):
        self.assertFalse(landscape.is_cell("aligned4k", 2048))
        self.assertTrue(landscape.is_cell("aligned4k", 8192) and landscape.is_cell("lone", 8))

    def test_ratio_to_the_best_of_the_others(self):
        made = section(ours=[30, 50, 90, 100], slow=[60, 60, 100, 101], fast=[20, 100, 91, None])
        self.assertEqual(made.ratio("lone", 64), (1.5, "fast"))
        self.assertEqual(made.ratio("grow", 4096), (100 / 101, "slow"))
        self.assertEqual([landscape.cell_text(loss.pattern, loss.size) for loss in landscape.losses(made)], ["lone 64"])
        self.assertAlmostEqual(landscape.mean(made), (1.5 * 5 / 6 * 90 / 91 * 100 / 101) ** (1 / 4))

    def test_losses_have_an_order_and_a_limit(self):
        made = section(ours=[110, 112, 150, 120], other=[100, 100, 100, 100])
        self.assertEqual([round(loss.ratio, 2) for loss in landscape.losses(made)], [1.5, 1.2, 1.12])

    def test_the_best_that_enters_the_kernel_as_rarely(self):
        made = section(ours=[200] * 4, kernel=[100] * 4, none=[160] * 4)
        made.keep("calls", "kernel", "lone", 64, 11.0)
        made.keep("faults", "kernel", "lone", 4096, 10.0)
        found = {(loss.pattern, loss.size): (loss.fair_ratio, loss.fair_rival) for loss in landscape.losses(made)}
        self.assertEqual(found["lone", 64], (1.25, "none"))
        self.assertEqual(found["lone", 4096], (2, "kernel"))

    def test_nothing_to_compare_with(self):
        alone = section(ours=[1, 2, 3, 4])
        self.assertEqual((alone.ratio("lone", 64), landscape.losses(alone), landscape.mean(alone)), ((None, None), [], None))
        self.assertIn("| this | **1.0** | **2.0** |", landscape_page.page(section(this=[1, 2, 3, 4]), "made", "here", "versions"))

    def test_page(self):
        made = section(ours=[30.24, 50, 90, 1000], fast=[20, 100, 91, None])
        made.failures = {"fast": {"grow 4K, instructions": "signal 11"}}
        made.unsteady = {"fast": ["lone 64"]}
        text = landscape_page.page(made, "made", "here", "versions")
        for line in ("In 1 of 3 cells this library", "| lone 64 | 1.51 | 30.2 | 20.0 fast | 0 / 0 | 1.51 fast |\n",
                     "- FAIL: fast, grow 4K, instructions: signal 11\n", "| ours | 30.2 | **50.0** |\n", "| fast | 91.0 | – |\n",
                     "Such cells: fast 1."):
            self.assertIn(line, text)


class Files(unittest.TestCase):
    def setUp(self):
        temp = tempfile.TemporaryDirectory()
        self.addCleanup(temp.cleanup)
        self.path = pathlib.Path(temp.name, "a.json")

    def test_round_trip(self):
        made = section(ours=[1, 2.5, 3, None], other=[1, 2, 3, 4])
        results.write(str(self.path), "landscape", made)
        self.assertEqual(results.read(self.path), {"landscape": made})

    def test_damaged(self):
        results.write(str(self.path), "landscape", section(ours=[1, 2, 3, 4]))
        text = self.path.read_text()
        for before, after in (('"lone": [1, 2]', '"lone": [1]'), ('"methods": {"ours": "callgrind"}', '"methods": {}'),
                              ('"sizes": [64, 4096]', '"sizes": 3')):
            self.assertIn(before, text)
            self.path.write_text(text.replace(before, after))
            with self.assertRaisesRegex(results.FormatError, "damaged"):
                results.read(self.path)


DUMP = """# callgrind format
desc: Trigger: Client Request: lone/64/10/1
positions: instr line
events: Ir
ob=/x/driver
fn=main
0x100 0 70
calls=10 0x200 0
0x104 0 5000
ob=/x/alloc.so
fn=malloc
0x200 0 30
0x204 0 20
calls=1 0x300 0
0x208 0 900
ob=/x/libc.so
fn=memset
0x300 0 900
"""


class Counts(unittest.TestCase):
    def test_dump(self):
        with tempfile.TemporaryDirectory() as directory:
            for number, text in ((10, DUMP.replace("10/1", "10/2")), (9, DUMP), (11, "events: Ir\n")):
                pathlib.Path(directory, f"out.7.{number}").write_text(text)
            pathlib.Path(directory, "out.7").write_text("events: Ir\n")
            found = list(callgrind.counts(directory, "/x/driver"))
        costs = {("/x/alloc.so", 0x200): [30, 0, 0], ("/x/alloc.so", 0x204): [20, 0, 0], ("/x/libc.so", 0x300): [900, 0, 0]}
        self.assertEqual(found, [("lone/64/10/1", costs), ("lone/64/10/2", costs)])
        self.assertEqual(counting.total(costs, [("/x/libc.so", 0x2F0, 0x310)]), 50)
        self.assertEqual(counting.total(costs, [("/x/alloc.so", 0x200, 0x204)]), 920)
        with mock.patch.object(counting, "repeated", lambda where: {0x204} if where == "/x/alloc.so" else set()):
            self.assertEqual(counting.total(costs, []), 930)

    def test_lines(self):
        lines = [["outside", "/libc.so", "1", "2"], ["lone/64/10/1", "50"], ["failed", "grow/64", "signal", "11"]]
        self.assertEqual(counting.failed(lines), {("grow", 64): "signal 11"})
        self.assertEqual(counting.by_cell([("lone/64/10/1", 50), ("lone/64/10/2", 60)]), {("lone", 64): [5, 6]})

    def test_golden(self):
        was = {("lone", 64): 35.0, ("lone", 128): 35.0, ("grow", 64): 400.0, ("grow", 128): 400.0, ("random", 64): 1.0}
        now = {("lone", 64): 35.5, ("lone", 128): 37.0, ("grow", 64): 420.0, ("grow", 128): 300.0, ("mixed", 64): 1.0}
        self.assertEqual(golden.compare(was, now), (["lone 128: 35 -> 37", "grow 64: 400 -> 420"], ["grow 128: 400 -> 300"],
                                                    ["mixed 64", "random 64"]))

    def test_golden_file(self):
        found = {(pattern, size): 1.5 for pattern in landscape.PATTERNS for size in landscape.SIZES
                 if landscape.is_cell(pattern, size)}
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory, "a.csv")
            golden.write(found, "gcc 1.2", path)
            self.assertEqual(golden.read(path), ("gcc 1.2", found))
        self.assertEqual(golden.read()[1].keys(), found.keys())


# malloc takes N instructions and CALLS system calls more than that of libc.
LIBRARY = """
#include <stddef.h>
extern void* __libc_malloc(size_t);
void* malloc(size_t size) {
  __asm__ volatile(".rept %d\\n nop\\n .endr");
  for (int i = 0; i < %d; i++) {
    long number = 39;
    __asm__ volatile("syscall" : "+a"(number) : : "rcx", "r11", "memory");
  }
  return __libc_malloc(size);
}
"""
CRASH = "#include <stddef.h>\nextern void* __libc_malloc(size_t);\n" \
        "void* malloc(size_t size) { if (size == 10000) *(volatile char*)0 = 1; return __libc_malloc(size); }\n"


@unittest.skipUnless(CAN_COUNT, "needs a C compiler and glibc on x86-64")
class Programs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temp = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temp.cleanup)
        cls.directory = pathlib.Path(temp.name)
        cls.program = counting.build(temp.name)

    def library(self, text, name):
        path = self.directory / name
        subprocess.run([CC, "-O1", "-shared", "-fPIC", "-xc", "-", "-o", path], input=text, text=True, check=True)
        return str(path)

    def test_patterns_are_those_of_the_table(self):
        done = subprocess.run([self.program, "list"], capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout.split(), list(landscape.PATTERNS))

    def test_bad_arguments_are_named(self):
        for words, said in ((["guess", "1", "lone", "64"], "no such mode: guess"), (["step", "0", "lone", "64"], "not a share: 0"),
                            (["step", "1", "alone", "64"], "no such pattern: alone"), (["step", "1", "lone", "3"], "not a size: 3"),
                            (["step", "1", "lone", "64K"], "not a size: 64K"), (["step", "1", "lone"], "needs a mode")):
            done = subprocess.run([self.program, *words], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, said in done.stderr), (2, True), (words, done.stderr))

    def test_every_pattern_runs(self):
        cells = [(pattern, size) for pattern in landscape.PATTERNS for size in (8, 4096)]
        for mode in ("faults", "calls"):
            found, failed = counting.count(mode, self.program, "", cells, 16)
            self.assertEqual((found.keys(), failed), (set(cells), {}))

    def test_instructions(self):
        cells = [("lone", 64), ("fifo16", 100), ("calloc", 64), ("remote", 64)]
        few, many = (self.library(LIBRARY % (n, 0), f"nop{n}.so") for n in (3, 13))
        for method in counting.METHODS:
            if method == counting.STEP or HAS_VALGRIND:
                before, after = (counting.count(method, self.program, library, cells, 16)[0] for library in (few, many))
                more = {cell: round(after[cell][-1] - before[cell][-1], 1) for cell in cells}
                self.assertEqual(more, {cell: 0 if cell[0] == "calloc" else 10 for cell in cells}, method)

    @unittest.skipUnless(HAS_VALGRIND, "no valgrind")
    def test_both_methods_agree(self):
        cells = [("lone", 64), ("lifo256", 64), ("calloc", 4096), ("grow", 4096)]
        stepped, counted = (counting.count(method, self.program, "", cells, 16)[0] for method in reversed(counting.METHODS))
        for cell in cells:
            self.assertAlmostEqual(stepped[cell][0], counted[cell][0], delta=0.01 * counted[cell][0], msg=cell)

    @unittest.skipUnless(HAS_VALGRIND, "no valgrind")
    def test_the_difference_of_two_runs_agrees(self):
        """The start and the warm-up are alike in both, and counted; so is the mode that knows nothing of callgrind."""
        for cell in (("lone", 64), ("fifo16", 4096)):
            sums = [self.sum_of_all("faults", share, cell) for share in (1, 2)]
            counted = counting.count(counting.CALLGRIND, self.program, "", [cell])[0][cell]
            self.assertAlmostEqual((sums[0] - sums[1]) / 1024, counted[-1], delta=0.01 * counted[-1], msg=cell)

    def sum_of_all(self, mode, share, cell):
        with tempfile.TemporaryDirectory() as directory:
            command = [word for word in callgrind.command(directory) if word != "--collect-atstart=no"]
            counting.run([*command, self.program, mode, str(share), cell[0], str(cell[1])], "")
            dumps = pathlib.Path(directory).iterdir()
            return sum(counting.total(callgrind.read_dump(path, self.program)[1], []) for path in dumps)

    def test_system_calls(self):
        cells = [("lone", 64), ("remote", 64), ("calloc", 64)]
        found, _ = counting.count("calls", self.program, self.library(LIBRARY % (0, 2), "calls.so"), cells)
        self.assertEqual({cell: round(values[-1]) for cell, values in found.items()},
                         {("lone", 64): 2, ("remote", 64): 2, ("calloc", 64): 0})

    def test_page_faults(self):
        with mock.patch.dict(counting.os.environ, {"GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=100000"}):
            found, _ = counting.count("faults", self.program, "", [("lone", 1 << 20), ("lone", 64)])
        self.assertAlmostEqual(found["lone", 1 << 20][-1], 257, delta=1)  # with its head, in pages of 4 KiB
        self.assertEqual(found["lone", 64][-1], 0)

    def test_a_crash_is_the_cell_s_own(self):
        crash = self.library(CRASH, "crash.so")
        for mode in (counting.STEP, "calls", "faults"):
            found, failed = counting.count(mode, self.program, crash, [("lone", 10000), ("lone", 64)], 16)
            self.assertEqual((list(found), failed), ([("lone", 64)], {("lone", 10000): "signal 11"}), mode)

    def test_methods(self):
        self.assertEqual(counting.method_for(self.program, "", [counting.STEP]), counting.STEP)
        with mock.patch.object(counting.shutil, "which", lambda name: None):
            self.assertEqual(counting.method_for(self.program, ""), counting.STEP)
            with self.assertRaisesRegex(Failure, "callgrind: valgrind or objdump is not installed"):
                counting.method_for(self.program, "", [counting.CALLGRIND])

    def test_it_cannot_be_compiled(self):
        for cc, reason in (("false", "cannot be compiled"), ("no-such-compiler", "no-such-compiler: No such file")):
            with self.assertRaisesRegex(Failure, reason):
                counting.build(self.directory, cc)


@unittest.skipUnless(HAS_PACKAGES and CAN_COUNT, "needs the packages of bench/requirements.txt, and glibc on x86-64")
class Command(unittest.TestCase):
    def setUp(self):
        temp = tempfile.TemporaryDirectory()
        self.addCleanup(temp.cleanup)
        self.directory = pathlib.Path(temp.name)
        self.ours = str(self.directory / "ours.so")
        self.build(LIBRARY % (200, 0))

    def build(self, text):
        subprocess.run([CC, "-O1", "-shared", "-fPIC", "-xc", "-", "-o", self.ours], input=text, text=True, check=True)

    def command(self, *arguments):
        from suite import __main__ as front
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
            with self.assertRaises(SystemExit) as caught, mock.patch.object(sys, "argv", ["bench.py", *arguments]):
                front.entry()
        return caught.exception.code, out.getvalue()

    def test_it_counts_and_reports(self):
        file = str(self.directory / "a.json")
        status, _ = self.command("landscape", "--alloc", f"ours={self.ours}", "--sizes", "64,4K", "--patterns", "lone,aligned4k",
                                 "--methods", "step", "--quick", "--json", file, "--note", "text")
        found = results.read(file)["landscape"]
        self.assertEqual((status, list(found.allocators), found.sizes, found.note, found.is_complete),
                         (0, ["ours", "glibc"], [64, 4096], "text", True))
        more = found.value("instructions", "ours", "lone", 64) - found.value("instructions", "glibc", "lone", 64)
        self.assertTrue(200 <= more < 220, more)
        self.assertIsNone(found.value("instructions", "ours", "aligned4k", 64))
        self.assertEqual(self.command("report", file, "--out", str(self.directory / "out"))[0], 0)
        page = (self.directory / "out/index.html").read_text()
        for text in ("<svg", "<th>lone 64</th>", "step (ours)"):
            self.assertIn(text, page)

    def test_bad_arguments_are_named(self):
        ours = ("--alloc", f"ours={self.ours}")
        for arguments, said in (((), "--alloc ours=LIB"), ((*ours, "--patterns", "lone,none"), "no such pattern: none"),
                                ((*ours, "--sizes", "64,3"), "'3' is not a size"),
                                ((*ours, "--methods", "guess"), "no such method: guess"),
                                ((*ours, "--allocs", "theirs"), "no such allocator: theirs"),
                                ((*ours, "--peers", "/no/where"), "no such directory of peers"),
                                (("--alloc", "ours"), "'ours' is not NAME=LIB"), ((*ours, "--jobs", "0"), "0 is not in the range")):
            status, out = self.command("landscape", *arguments)
            self.assertEqual((status, said in out), (2, True), (arguments, out))

    def test_a_failure_is_shown(self):
        self.build(CRASH)
        status, out = self.command("landscape", "--alloc", f"ours={self.ours}", "--sizes", "64,10000", "--patterns", "lone",
                                   "--methods", "step", "--quick")
        self.assertEqual(status, 1)
        self.assertIn("FAIL ours, lone 10000, instructions: signal 11", out)


if __name__ == "__main__":
    unittest.main()
