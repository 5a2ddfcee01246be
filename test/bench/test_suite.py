#!/usr/bin/env python3
"""The parts of bench/suite that decide what counts: runs, outputs, medians, scores, goals; and the table of the tests.

Needs no packages. Run with build/bench-venv/bin/python it also makes a page and runs the commands."""

import contextlib
import importlib.util
import io
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

if sys.version_info < (3, 11):
    print("SKIP bench-suite: needs Python 3.11")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))

from suite import bugs, figures, goals, landscape, machine, measure, pages, peers, publish  # noqa: E402
from suite import results, rounds, scores, table  # noqa: E402
from suite.cost import Cost, Failure  # noqa: E402
from suite.measure import Job  # noqa: E402
from suite.results import Measured, Result, Section  # noqa: E402

HAS_PACKAGES = all(importlib.util.find_spec(name) for name in ("click", "jinja2", "matplotlib", "rich"))
CC = shutil.which("cc")


def setUpModule():
    measure.prepare()  # before the charts start threads


def result(*cpu_s, peak_kib=1000, faults=100):
    return Result([Cost(s, s, peak_kib, faults) for s in cpu_s])


def measured(name, threads=1, **found):
    return Measured(name, "what", "source", f"{name} 1", threads, False, found)


def section(*tests):
    names = dict.fromkeys(name for test in tests for name in test.results)
    return Section("today", {"CPU": "some"}, 3, False, 2, {name: "" for name in names}, list(tests), is_complete=True)


class InDirectory(unittest.TestCase):
    def setUp(self):
        temp = tempfile.TemporaryDirectory()
        self.addCleanup(temp.cleanup)
        self.directory = pathlib.Path(temp.name)

    def script(self, text, name="program"):
        path = self.directory / name
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)
        return str(path)

    def library(self):
        if not CC:
            self.skipTest("no C compiler")
        path = self.directory / "library.so"
        subprocess.run([CC, "-shared", "-fPIC", "-xc", os.devnull, "-o", path], check=True)
        return str(path)


class Runs(InDirectory):
    def run_once(self, text, library="", timeout_s=20, **more):
        return measure.run_once(Job((self.script(text), "run"), library, **more), timeout_s, is_library_checked=True)

    def expect_failure(self, pattern, *arguments, **more):
        with self.assertRaisesRegex(Failure, pattern):
            self.run_once(*arguments, **more)
        self.assertEqual(measure.descendants(), [])

    def test_cost_and_output(self):
        cost, output = self.run_once("echo sum; i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; sleep 0.2")
        self.assertEqual(output, "sum\n")
        self.assertGreater(cost.cpu_s, 0)
        self.assertGreater(cost.wall_s, 0.2)
        self.assertTrue(500 < cost.peak_kib < 20000, cost)  # of the shell, not of this interpreter
        self.assertGreater(cost.faults, 0)

    def test_cost_of_other_processes_does_not_count(self):
        own = self.run_once("exit 0")[0]
        bytearray(200 << 20)
        self.assertLess(self.run_once("exit 0")[0].peak_kib, own.peak_kib + 4096)

    def test_crash(self):
        self.expect_failure("ended by SIGSEGV", "kill -SEGV $$")

    def test_exit_code(self):
        self.expect_failure("exit code 3: no good", "echo no good >&2; exit 3")

    def test_hang(self):
        self.expect_failure("still running after 0.3 s", "sleep 60 & sleep 60", timeout_s=0.3)

    def test_hang_in_a_group_of_its_own(self):
        if not shutil.which("setsid"):
            self.skipTest("no setsid")
        self.expect_failure("still running", "setsid sh -c 'sleep 60; true' & sleep 60", timeout_s=0.3)

    def test_processes_left_behind(self):
        with mock.patch.object(measure, "GRACE_S", 0.2):
            self.expect_failure("left processes", "sleep 60 &")

    def test_no_program(self):
        with self.assertRaisesRegex(Failure, "exit code 127"):
            measure.run_once(Job(("/no/such/program",)), 20)

    def test_library_is_loaded(self):
        library = self.library()
        self.assertEqual(self.run_once('echo "$LD_PRELOAD"', library)[1], library + "\n")

    def test_library_with_an_environment(self):
        library = pathlib.Path(self.library())
        library.with_suffix(".env").write_text("A_TUNABLE=x=0\n")
        self.assertEqual(self.run_once('echo "$A_TUNABLE"', str(library))[1], "x=0\n")
        self.assertEqual(self.run_once('echo "$A_TUNABLE"')[1], "\n")

    def test_library_that_is_none(self):
        broken = self.script("not ELF", "broken.so")
        self.expect_failure("could not be loaded", "exit 0", broken)

    def test_program_that_does_not_load_it(self):
        self.expect_failure("was not loaded", 'exec env -u LD_PRELOAD sleep 0', self.library(), is_script=True)

    def test_library_in_an_empty_environment(self):
        text = 'exec env -i LD_PRELOAD="$BENCH_PRELOAD" sleep 0.3'
        self.run_once(text, self.library(), is_script=True)

    def test_script_that_preloads(self):
        library = self.library()
        text = '[ -z "$LD_PRELOAD" ] || exit 9\nexec env LD_PRELOAD="$BENCH_PRELOAD" sh -c "echo $1"'
        self.assertEqual(self.run_once(text, library, is_script=True)[1], "run\n")

    def test_script_that_measures(self):
        text = 'for cpu in 1.5 2; do echo "cost cpu_s=$cpu wall_s=3 peak_kib=700 faults=10" >> "$BENCH_COST"; done'
        self.assertEqual(self.run_once(text, is_script=True)[0], Cost(3.5, 6, 700, 20))

    def test_script_that_measures_nonsense(self):
        self.expect_failure("not a line of cost", 'echo "cost cpu_s=fast" > "$BENCH_COST"', is_script=True)
        self.expect_failure("reports no cost", ': > "$BENCH_COST"', is_script=True)

    def test_check_of_a_script(self):
        self.assertIsNone(measure.why_not(self.script("exit 0")))
        self.assertEqual(measure.why_not(self.script("echo no server here; exit 1")), "no server here")
        self.assertEqual(measure.why_not(self.script("[ $1 = check ] || { echo no data; exit 1; }")), "no data")


class Rounds(unittest.TestCase):
    def run_test(self, n_rounds, behaviour, names=("ours", "glibc", "other")):
        """behaviour(name, number of the run) gives the output, or raises."""
        self.calls = []

        def run(job, _timeout_s, is_library_checked):
            number = sum(name == job.library for name, _ in self.calls)
            self.calls.append((job.library, is_library_checked))
            return Cost(number, 1, 1, 1), behaviour(job.library, number)

        return rounds.run_test({name: Job(("program",), name) for name in names}, n_rounds, 1, run=run)

    def test_order_is_rotated_and_the_warm_up_is_not_counted(self):
        found = self.run_test(3, lambda name, number: "same")
        order = [name for name, _ in self.calls]
        self.assertEqual(order, ["ours", "glibc", "other", "glibc", "other", "ours", "other", "ours", "glibc",
                                 "ours", "glibc", "other"])
        self.assertEqual([is_checked for _, is_checked in self.calls], [True] * 3 + [False] * 9)
        self.assertEqual([run.cpu_s for run in found["ours"].runs], [1, 2, 3])

    def test_a_failure_ends_the_runs_of_that_allocator(self):
        def behaviour(name, number):
            if name == "ours" and number == 1:
                raise Failure("crash")
            return "same"

        found = self.run_test(3, behaviour)
        self.assertEqual({name: r.failure for name, r in found.items()}, {"ours": "crash", "glibc": "", "other": ""})
        self.assertEqual(sum(name == "ours" for name, _ in self.calls), 2)

    def test_output_that_changes(self):
        found = self.run_test(2, lambda name, number: f"{number}" if name == "ours" else "0")
        self.assertIn("from run to run", found["ours"].failure)

    def test_output_unlike_the_others(self):
        found = self.run_test(1, lambda name, number: "wrong" if name == "glibc" else "right")
        self.assertEqual({name for name, r in found.items() if r.failure}, {"glibc"})

    def test_one_against_one(self):
        found = self.run_test(1, lambda name, number: name, names=("ours", "glibc"))
        self.assertEqual({name for name, r in found.items() if r.failure}, {"ours"})

    def test_interrupted(self):
        def behaviour(name, number):
            if (name, number) == ("ours", 2):
                raise KeyboardInterrupt
            return "same"

        with self.assertRaises(rounds.Interrupted) as caught:
            self.run_test(3, behaviour)
        self.assertEqual({name: len(r.runs) for name, r in caught.exception.results.items()},
                         {"ours": 1, "glibc": 1, "other": 2})

    def test_interrupted_in_the_warm_up(self):
        with self.assertRaises(rounds.Interrupted) as caught:
            self.run_test(3, mock.Mock(side_effect=KeyboardInterrupt))
        self.assertIsNone(caught.exception.results)

    def test_powers_of_two(self):
        self.assertEqual([rounds.powers_of_two(n) for n in (1, 2, 6, 8)], [[1], [1, 2], [1, 2, 4, 6], [1, 2, 4, 8]])


class Scores(unittest.TestCase):
    def test_known_figures(self):
        s = section(measured("a", ours=result(1, 1, 9), other=result(2)),
                    measured("b", ours=result(2), other=result(1)),
                    measured("c", ours=result(1), other=result(4)))
        self.assertAlmostEqual(scores.score(s, "ours", "cpu_s"), 100 * 0.5 ** (1 / 3))
        self.assertAlmostEqual(scores.score(s, "other", "cpu_s"), 100 * (1 / 8) ** (1 / 3))
        self.assertAlmostEqual(scores.mean_ratio(s, "other", "ours", "cpu_s"), 4 ** (1 / 3))
        self.assertEqual(scores.score(s, "other", "peak_kib"), 100)

    def test_failures_take_no_part(self):
        s = section(measured("a", ours=result(1), other=result(2)),
                    measured("b", ours=result(2), other=Result(failure="crash")))
        self.assertAlmostEqual(scores.mean_ratio(s, "other", "ours", "cpu_s"), 2)
        self.assertAlmostEqual(scores.score(s, "other", "cpu_s"), 50)
        self.assertAlmostEqual(scores.score(s, "ours", "cpu_s"), 100)

    def test_nothing_to_divide_by(self):
        self.assertEqual([scores.ratio(a, b) for a, b in ((0, 3), (3, 0), (0, 0), (3, 2))], [None, None, None, 1.5])
        s = section(measured("a", ours=result(0), other=result(0)))
        self.assertIsNone(scores.score(s, "ours", "cpu_s"))
        self.assertIsNone(scores.mean_ratio(s, "other", "ours", "cpu_s"))
        self.assertIsNone(scores.score(section(measured("a", ours=Result(failure="crash"))), "ours", "cpu_s"))

    def test_builds(self):
        s = section(measured("a", base=result(1, 2, 4), other=result(2, 2, 2)),
                    measured("b", base=result(1, 1, 1), other=result(1, 1, 4)),
                    measured("c", base=result(1), other=Result(failure="crash")))
        self.assertEqual(scores.round_ratios(s.tests[0], "other", "base", "cpu_s"), [2, 1, 0.5])
        self.assertIsNone(scores.round_ratios(s.tests[2], "other", "base", "cpu_s"))
        for got, expected in zip(scores.round_means(s.tests, "other", "base", "cpu_s"), (2 ** 0.5, 1, 2 ** 0.5), strict=True):
            self.assertAlmostEqual(got, expected)

    def test_growth(self):
        s = section(*(measured("a", n, ours=result(cpu)) for n, cpu in ((1, 2), (2, 4), (4, 16))))
        self.assertEqual(scores.growth(s, "a", "ours"), {1: 1, 2: 1, 4: 2})
        self.assertEqual(scores.growth(section(*s.tests[1:]), "a", "ours"), {})


class Goals(unittest.TestCase):
    PEERS = ("fast", "slow")

    def misses(self, goal, *tests):
        return goals.verdicts(section(*tests), [goal], self.PEERS)[0].misses

    def test_each_test(self):
        goal = goals.EachTest("", "cpu_s", 1.03)
        self.assertEqual(self.misses(goal, measured("a", ours=result(1.03), fast=result(1), slow=result(3))), [])
        self.assertEqual(self.misses(goal, measured("a", ours=result(1.1), fast=result(1)),
                                     measured("b", ours=result(1, 2, 3), fast=result(1, 1, 2)),
                                     measured("c", ours=Result(failure="crash"), fast=result(1))),
                         ["c: FAIL: crash", "b: 2.000 x fast, the ranges overlap", "a: 1.100 x fast"])

    def test_others_than_the_peers_do_not_count(self):
        goal = goals.EachTest("", "cpu_s", 1.03)
        self.assertEqual(self.misses(goal, measured("a", ours=result(2), fast=result(2), unknown=result(1))), [])

    def test_memory_among_those_that_are_not_slow(self):
        goal = goals.EachTest("", "peak_kib", 1.10, 1.25)

        def test(slow_cpu):
            return measured("a", ours=result(1, peak_kib=1000), fast=result(1, peak_kib=2000),
                            slow=result(slow_cpu, peak_kib=500))
        self.assertEqual(self.misses(goal, test(1.26)), [])
        self.assertEqual(self.misses(goal, test(1.25)), ["a: 2.000 x slow"])

    def test_overall(self):
        goal = goals.Overall("", "cpu_s", 0.90)
        tests = measured("a", ours=result(1), fast=result(1), slow=result(2)), measured("b", ours=result(1), fast=result(1.2))
        self.assertEqual(self.misses(goal, *tests), ["0.913 x fast"])
        self.assertEqual(self.misses(goal, *tests, measured("c", ours=result(1), fast=result(2))), [])

    def test_score(self):
        goal = goals.Score("", "cpu_s", 97, 5)
        self.assertEqual(self.misses(goal, measured("a", ours=result(1), fast=result(1.1))), [])
        self.assertEqual(self.misses(goal, measured("a", ours=result(1), fast=result(1.04))),
                         ["+3.8 points to fast (100.0 to 96.2)"])
        self.assertEqual(self.misses(goal, measured("a", ours=result(2), fast=result(1))),
                         ["the score is 50.0", "-50.0 points to fast (50.0 to 100.0)"])

    def test_nothing_measured(self):
        alone = section(measured("a", ours=result(1)))
        self.assertEqual([v.n_checked for v in goals.verdicts(alone)], [0] * len(goals.GOALS))
        self.assertFalse(goals.are_reached(alone))

    def test_reached(self):
        good = section(measured("a", ours=result(1, peak_kib=1, faults=1), **{peer: result(2) for peer in goals.PEERS}))
        self.assertTrue(goals.are_reached(good))
        good.is_quick = True
        self.assertFalse(goals.are_reached(good))


class Files(InDirectory):
    def write(self, *tests, name="run", file="a.json"):
        results.write(str(self.directory / file), name, section(*tests))
        return str(self.directory / file)

    def test_round_trip(self):
        tests = measured("a", ours=result(1, 2), other=Result(failure="crash")), measured("b", ours=result(3))
        path = self.write(*tests)
        self.assertEqual(results.read(path), {"run": section(*tests)})
        self.assertNotIn("group", pathlib.Path(path).read_text())
        self.write(measured("a", 2, ours=result(1)), name="scaling")
        self.assertEqual(list(results.read(path)), ["run", "scaling"])
        self.assertEqual(results.read(path)["run"], section(*tests))

    def test_refused(self):
        damaged = '{"format": 2, "run": {"tests": [{"results": 1}]}}'
        for text, pattern in (('{"format": 1}', "format 1"), ("[]", "not a file of results"), ("{", "not JSON"),
                              ('{"tests": {}}', "not a file of results"), (damaged, "damaged")):
            path = self.directory / "foreign.json"
            path.write_text(text)
            with self.assertRaisesRegex(results.FormatError, pattern):
                results.read(path)
        with self.assertRaisesRegex(results.FormatError, "No such file"):
            results.read(self.directory / "none.json")

    def test_differences(self):
        before = section(measured("a", ours=result(1, 1.1), gone=result(1)), measured("b", ours=result(1, 2)))
        after = section(measured("a", ours=result(2, 2.2)), measured("b", ours=result(1.5, 2.5)),
                        measured("c", ours=result(1)))
        found = {d.test: d for d in scores.differences(before, after, "cpu_s")}
        self.assertEqual({name: d.is_clear for name, d in found.items()}, {"a": True, "b": False})
        self.assertAlmostEqual(found["a"].ratio, 2)
        self.assertEqual(dict(scores.not_compared(before, after)),
                         {"gone": "only in the first file", "c": "only in the second file"})
        after.tests[0].command = "a 2"
        self.assertEqual(dict(scores.not_compared(before, after))["a"], "other arguments: a 1 | a 2")
        self.assertEqual([d.test for d in scores.differences(before, after, "cpu_s")], ["b"])


MALLOC = """
#include <stddef.h>
extern void* __libc_malloc(size_t);
void* malloc(size_t size) { return __libc_malloc(size); }
"""


@unittest.skipUnless(CC, "no C compiler")
class Peers(InDirectory):
    def build(self, name, source, *options):
        path = self.directory / name
        subprocess.run([CC, "-shared", "-fPIC", "-xc", "-", "-o", path, *options], input=source, text=True, check=True)
        return path

    def find(self, *arguments):
        found, unused = peers.find(str(self.directory), *arguments)
        return [peer.name for peer in found], unused

    def test_any_name(self):
        for name in ("nobody-knows.so", "liblib.so", "libx.y.so"):
            self.build(name, MALLOC)
        (self.directory / "versions.txt").write_text("lib 1.2 beta\n")
        self.assertEqual(self.find(), (["lib", "x.y", "nobody-knows"], {}))
        self.assertEqual([peer.version for peer in peers.find(str(self.directory))[0]], ["1.2 beta", "", ""])
        self.assertEqual(self.find((), ["x.y"]), (["x.y"], {}))

    def test_what_is_not_used_has_a_reason(self):
        self.build("nothing.so", "int nothing;")
        self.build("libhelper.so", "int helper(void) { return 1; }")
        self.build("needs.so", MALLOC + "int helper(void); int use(void) { return helper(); }", "-L", self.directory, "-lhelper")
        self.build("undefined.so", MALLOC + "extern int nowhere; int* use(void) { return &nowhere; }")
        self.build("crash.so", MALLOC + "__attribute__((constructor)) static void crash(void) { *(volatile int*)0 = 1; }")
        self.build("exits.so", MALLOC + "void _exit(int); __attribute__((constructor)) static void end(void) { _exit(3); }")
        self.build("object.so", MALLOC, "-c")
        (self.directory / "script.so").write_text("INPUT(libc.so.6)")
        (self.directory / "empty.so").touch()
        (self.directory / "folder.so").mkdir()
        (self.directory / "link.so").symlink_to("gone")
        shutil.copy(self.build("good.so", MALLOC), self.directory / "libgood.so.2")
        foreign = bytearray((self.directory / "good.so").read_bytes())
        foreign[18:20] = b"\x08\x00"  # MIPS
        (self.directory / "foreign.so").write_bytes(foreign)
        (self.directory / "half.so").write_bytes((self.directory / "good.so").read_bytes()[:100])
        names, unused = self.find()
        self.assertEqual(names, ["good"])
        expected = {"nothing.so": "does not define malloc", "libhelper.so": "does not define malloc",
                    "needs.so": "libhelper.so", "undefined.so": "nowhere", "crash.so": "SIGSEGV", "exits.so": "exit code 3",
                    "object.so": "not a shared library", "script.so": "not a shared library", "empty.so": "not a shared library",
                    "folder.so": "directory", "link.so": "No such file", "libgood.so.2": "does not end in .so",
                    "foreign.so": "another kind of processor", "half.so": "cannot be loaded"}
        self.assertEqual(unused.keys(), expected.keys())
        for file, reason in expected.items():
            self.assertIn(reason, unused[file], file)

    def test_names_that_are_taken(self):
        for name in ("libglibc.so", "libtwice.so", "twice.so"):
            self.build(name, MALLOC)
        names, unused = self.find({"glibc": None})
        self.assertEqual(names, ["twice"])
        self.assertEqual(unused, {"libglibc.so": "the name 'glibc' is taken",
                                  "twice.so": "the name 'twice' is that of libtwice.so"})

    def test_the_reason_is_said_when_it_was_asked_for(self):
        self.build("nothing.so", "int nothing;")
        ours = str(self.build("ours.so", MALLOC))
        with self.assertRaisesRegex(table.UsageError, "no such allocator: nothing .*nothing.so is not used: it does not define"):
            table.find_allocators([("ours", ours)], str(self.directory), ["ours", "nothing"])


def some_bugs():
    return bugs.Bugs("2026-01-02 03:04+00:00", {"CPU": "some"}, 10, {"glibc": "1", "release": "", "secure": ""},
                     ["release", "secure"],
                     {"a": "first", "b": "first", "c": "second"},
                     {"glibc": {"a": {"none": 10}, "b": {"none": 10}, "c": {"crash": 10}},
                      "release": {"a": {"crash": 5, "none": 5}, "b": {"report": 10}, "c": {"hang": 10}},
                      "secure": {"a": {"abort": 10}, "b": {"abort": 8, "prevented": 2}, "c": {"crash": 10}}},
                     {"glibc": {"SIGSEGV": 10}, "release": {"SIGBUS": 5}, "secure": {"SIGSEGV": 10}}, "c" * 40)


def some_cells():
    return landscape.Landscape("2026-01-02 03:04+00:00", {"CPU": "some"}, {"ours": "1", "glibc": "2"},
                               {"ours": "callgrind", "glibc": "step"}, [64], ["lone"],
                               {"instructions": {"ours": {"lone": [50.5]}, "glibc": {"lone": [40]}}, "faults": {}, "calls": {}},
                               is_complete=True, commit="c" * 40)


class Detected(unittest.TestCase):
    def test_a_crash_is_no_detection(self):
        rates = some_bugs().rates("release")
        self.assertEqual(rates.text(bugs.DETECTED), "1 of 3, 33 %")
        self.assertEqual(rates.count(["crash"]), (0.5, 3))
        self.assertEqual(rates.count(["crash"], "second"), (0, 1))
        self.assertEqual(some_bugs().rates("glibc").text(bugs.DETECTED), "0 of 3, 0 %")

    def test_the_page_has_a_column_for_crashes(self):
        text = bugs.page(some_bugs(), "made", "here")
        for line in ("|  | detected | crash | abort | report | prevented | nothing | hangs |",
                     "| release | **1 of 3, 33 %** | 0.5 (SIGBUS 5) | 0 | 1 | 0 | 0.5 | 1 |",
                     "| first | 0 of 2, 0 % | 1 of 2, 50 % | 2 of 2, 100 % |", "| first | 0 | 0.5 | 0 |",
                     "| a | – | crash 5, – 5 | abort |"):
            self.assertIn(line + "\n", text)


class Published(InDirectory):
    def setUp(self):
        super().setUp()
        self.published = publish.Published(self.directory)
        self.published.readme.write_text(f"# Title\n\n{publish.BEGIN}\nformer figures\n{publish.END}\n\n## More\n")
        self.section = section(measured("won", ours=result(1, 1.1), peer=result(2, 2.2), glibc=result(3)),
                               measured("lost", ours=result(2, 2.2, peak_kib=1500), peer=result(1, 1.1), glibc=result(1.5)),
                               measured("close", ours=result(1.02, 1.2), peer=result(1, 1.1), glibc=result(3)))
        self.section.commit, self.section.date = "c" * 40, "2026-01-02 03:04+00:00"
        self.section.allocators["peer"] = "1.2"
        self.file = str(self.directory / "measured.json")
        results.write_all(self.file, {"run": self.section, "modes": self.section, "landscape": some_cells(), "bugs": some_bugs()})

    def publish(self):
        self.published.take(self.file)
        return self.published.write(lambda name, section: f"<svg>{name}</svg>\n")

    def test_what_is_made_does_not_differ(self):
        self.publish()
        self.assertEqual(self.published.differences(), [])
        text = self.published.readme.read_text()
        self.assertTrue(text.startswith("# Title\n\n<!--") and text.endswith("-->\n\n## More\n") and "former" not in text, text)
        self.publish()
        self.assertEqual(self.published.readme.read_text(), text)

    def test_losses_are_told(self):
        self.publish()
        for path in (self.published.readme, self.published.directory / "README.md"):
            text = path.read_text()
            self.assertIn("In 2 of 3 tests another allocator takes less CPU time than this library, and in 1 its peak", text)
            self.assertIn("| lost | +100 %, peer; 2 of 2 | +50 %, peer; 2 of 2 |\n", text)
            self.assertRegex(text, r"\| close \| \+5\.7 % ~, peer; 1 of 2 \| – \|\n")
            self.assertNotIn("| won | +", text)

    def test_a_failure_of_ours_is_a_loss(self):
        loss = scores.loss(measured("a", ours=Result(failure="crash"), peer=result(1)), "ours", "cpu_s")
        self.assertEqual(figures.loss_text(loss), "FAIL, peer; 1 of 1")

    CHANGES = {"README.md": ("50 %", "5 %"), "security.md": ("50 %", "5 %"), "modes.md": ("2.000", "1.900"),
               "landscape.md": ("50.5", "50.4"),
               "results.json": ("1.1", "1.05")}

    def test_each_difference_is_found(self):
        self.publish()
        for path in (self.published.readme, *self.published.directory.iterdir()):
            text = path.read_text()
            before, after = self.CHANGES.get(path.name, ("<svg>", "<svg >"))
            changed = text.replace(before, after)
            with self.subTest(path.name):
                self.assertNotEqual(changed, text)
                path.write_text(changed)
                self.assertNotEqual(self.published.differences(), [])
                path.unlink()
                self.assertNotEqual(self.published.differences(), [])
                path.write_text(text)
        self.assertEqual(self.published.differences(), [])

    def test_a_chart_of_other_results(self):
        self.publish()
        chart = self.published.directory / "time.svg"
        chart.write_text(publish.stamped("<svg></svg>\n", section(measured("a", ours=result(1)))))
        self.assertEqual(self.published.differences(), [f"{chart}: was drawn from other results"])

    def test_marks(self):
        self.publish()
        self.published.readme.write_text("# Title\n")
        self.assertRegex(self.published.differences()[0], "README.md has no lines")

    def test_what_is_not_fit(self):
        for field, value, pattern in (("commit", "", "of which commit"), ("is_complete", False, "interrupted"),
                                      ("commit", "c" * 40 + machine.CHANGED, "with changes")):
            results.write_all(self.file, {"run": results.dataclasses.replace(self.section, **{field: value})})
            with self.assertRaisesRegex(results.FormatError, pattern):
                self.published.take(self.file)

    def test_sections_of_two_libraries(self):
        self.publish()
        self.assertFalse([text for text in self.published.warnings() if "not all" in text])
        self.section.commit = "d" * 40
        results.write_all(self.file, {"run": self.section})
        self.publish()
        self.assertIn("not all of one library: run dddddddddddd, modes cccccccccccc, landscape cccccccccccc, bugs cccccccccccc", self.published.warnings())

    def test_age(self):
        head = machine.git("rev-parse", "HEAD")
        if not head:
            self.skipTest("no git, or no clone")
        self.section.date = machine.now()
        self.section.commit = head
        self.assertIsNone(publish.age("run", self.section))
        self.section.date = "2020-01-01 00:00+00:00"
        self.assertRegex(publish.age("run", self.section), "measured [0-9]+ days ago, and 0 commits")
        self.section.commit = "c" * 40
        self.assertRegex(publish.age("run", self.section), "does not have commit")


class Table(InDirectory):
    def load(self, text):
        path = self.directory / "tests.toml"
        path.write_text(text)
        return table.load(path)

    def test_threads(self):
        for argument, expanded in (("{threads}", "3"), ("{threads*2}", "6"), ("-t{threads}:{threads*10}", "-t3:30")):
            self.assertEqual(table.expand(argument, 3), expanded)

    def test_arguments(self):
        test = self.load('[a]\nargs = ["{threads}", "10"]\nquick = ["1"]\n[b]\nscript = "b.sh"\nargs = ["10"]')
        self.assertEqual(test["a"].arguments(False, 4), ("4", "10"))
        self.assertEqual(test["a"].arguments(True, 4), ("1",))
        self.assertEqual(test["b"].arguments(True, 4), ("10",))
        places = table.Places("programs", "real")
        self.assertEqual(test["a"].job(places, "lib", False, 4), Job(("programs/a", "4", "10"), "lib"))
        self.assertEqual(test["b"].job(places, "lib", False, 4), Job(("real/b.sh", "run", "10"), "lib", True))

    def test_refused(self):
        for row, pattern in (("speed = 3", "unknown key 'speed'"), ("args = 3", "no list"), ("args = [3]", "no string"),
                             ('args = ["{thread}"]', "{thread}"), ('scaling = "some"', "some"),
                             ('scaling = "private"', "no {threads}"), ('program = "x"\nscript = "y"', "both")):
            with self.assertRaisesRegex(table.UsageError, pattern):
                self.load("[a]\n" + row)
        for row in ('group = "traces-known"', 'script = "y"\ngroup = "some"'):
            with self.assertRaisesRegex(table.UsageError, "traces-known, traces-unseen"):
                self.load("[a]\n" + row)

    def test_choice(self):
        tests = self.load('[a]\n[b]\nscript = "b"\n[c]')
        for words, names in (([], "abc"), (["programs"], "ac"), (["real", "a"], "ab"), (["all"], "abc"),
                             (["c", "a"], "ac")):
            self.assertEqual("".join(test.name for test in table.choose_tests(tests, words)), names)
        tests |= self.load('[k]\nscript = "k"\ngroup = "traces-known"\n[u]\nscript = "u"\ngroup = "traces-unseen"')
        for words, names in (([], "abc"), (["real"], "b"), (["all", "traces"], "abcku"), (["traces-known"], "k"),
                             (["traces-unseen", "a"], "au")):
            self.assertEqual("".join(test.name for test in table.choose_tests(tests, words)), names)
        self.assertEqual(tests["k"].file(table.Places("programs", "real", "traces")), "traces/k")
        with self.assertRaisesRegex(table.UsageError, "no such test: d"):
            table.choose_tests(tests, ["a", "d"])

    def test_allocators(self):
        ours = self.directory / "ours.so"
        ours.touch()
        (self.directory / "versions.txt").write_text("other 1.2 beta\n")
        found, unused = table.find_allocators([("ours", str(ours))], None, [])
        self.assertEqual([a.name for a in found], ["ours", "glibc"])
        self.assertEqual((found[1].library, unused), ("", {}))
        self.assertRegex(found[0].version, r"^\d+\.\d+\.\d+$")
        self.assertEqual([a.name for a in table.find_allocators([("ours", str(ours))], None, ["glibc"])[0]], ["glibc"])
        for arguments in (([("ours", "/no")], None, []), ([], None, ["x"]), ([], "/no", []), ([("glibc", str(ours))], None, [])):
            with self.assertRaises(table.UsageError):
                table.find_allocators(*arguments)

    def test_the_table_of_the_project(self):
        for test in table.load(ROOT / "bench/tests.toml").values():
            with self.subTest(test.name):
                self.assertTrue(test.what and test.source)
                if test.is_real:
                    folder = ROOT / "bench" / ("traces" if test.group else "real")
                    self.assertTrue(os.access(folder / test.script, os.X_OK), test.script)
                else:
                    sources = [ROOT / "bench/programs" / f"{test.program}.{end}" for end in ("c", "cpp")]
                    self.assertTrue(test.program == "cfrac" or any(map(os.path.exists, sources)), test.program)


@unittest.skipUnless(HAS_PACKAGES, "needs the packages of bench/requirements.txt")
class Commands(InDirectory):
    def command(self, *arguments):
        from suite import __main__ as front
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
            with self.assertRaises(SystemExit) as caught, mock.patch.object(sys, "argv", ["bench.py", *arguments]):
                front.entry()
        return caught.exception.code

    def file(self, *tests):
        results.write(str(self.directory / "a.json"), "run", section(*tests))
        return str(self.directory / "a.json")

    def test_page(self):
        path = self.file(measured("a <b>", ours=result(1, 2), glibc=result(2), other=Result(failure="crash & burn")),
                         measured("zero", ours=result(0), glibc=result(0), other=result(30)))
        head = results.read(path)["run"]
        head.unused = {"x.so": "not a <library>"}
        results.write(path, "run", head)
        results.write(path, "scaling", section(*(measured("a", n, ours=result(n), glibc=result(0)) for n in (1, 2))))
        self.assertEqual(self.command("report", path, "--out", str(self.directory / "out")), 0)
        page = (self.directory / "out/index.html").read_text()
        for text in ("a &lt;b&gt;", "crash &amp; burn", "<svg", "FAIL", "not a &lt;library&gt;"):
            self.assertIn(text, page)
        self.assertTrue((self.directory / "out/overall.png").stat().st_size > 1000)

    def test_page_of_little(self):
        for tests in ([], [measured("a", ours=result(1))], [measured("a", ours=Result(failure="crash"))],
                      [measured("a", ours=Result(failure="crash"), other=result(1))]):
            head = section(*tests)
            head.allocators = {"ours": ""} | head.allocators
            results.write(str(self.directory / "a.json"), "run", head)
            self.assertEqual(self.command("report", str(self.directory / "a.json"), "--out", str(self.directory)), 0)

    def test_published_charts(self):
        from suite import charts, plot
        self.assertEqual(set(charts.PUBLISHED), set(publish.CHARTS))
        some = pages.shown(section(measured("a", ours=result(1, 2), glibc=result(2)),
                                   measured("b", ours=result(2), glibc=result(1))))
        for name, chart in charts.PUBLISHED.items():
            of = some if publish.CHARTS[name] == "run" else pages.shown(some_cells())
            drawing = plot.for_paper(chart, of)
            self.assertIn("<svg", drawing)
            self.assertEqual(drawing, plot.for_paper(chart, of))
            self.assertFalse([colour for colour in plot.PAPER if colour in drawing])

    def test_goals(self):
        self.assertEqual(self.command("goals", self.file(measured("a", ours=result(2), glibc=result(1)))), 1)
        self.assertEqual(self.command("goals", self.file(measured(
            "a", ours=result(1, peak_kib=1, faults=1), **{peer: result(2) for peer in goals.PEERS}))), 0)
        self.assertEqual(self.command("goals", "/no/file.json"), 2)

    def test_modes(self):
        self.script("echo sum", "a")
        (self.directory / "tests.toml").write_text("[a]\n")
        file = str(self.directory / "a.json")
        common = ("--programs", str(self.directory), "--table", str(self.directory / "tests.toml"), "--rounds", "2",
                  "--json", file)
        library = self.library()
        self.assertEqual(self.command("modes", "--alloc", f"release={library}", *common), 2)
        self.assertEqual(self.command("modes", "--alloc", f"release={library}", "--alloc", f"secure={library}", *common), 0)
        found = results.read(file)["modes"]
        self.assertEqual(list(found.allocators), ["release", "secure"])
        self.assertEqual([len(r.runs) for r in found.tests[0].results.values()], [2, 2])
        self.assertEqual(self.command("report", file, "--out", str(self.directory)), 2)  # not of this command

    def test_traces(self):
        """Their scripts lie in a folder of their own and are told where the replayer is; their groups are apart."""
        (self.directory / "traces").mkdir()
        for name in "ku":
            self.script('[ "$1" = run ] || exit 0\nLD_PRELOAD="$BENCH_PRELOAD" exec "$BENCH_PROGRAMS/replayer"', f"traces/{name}")
        self.script("echo sum", "replayer")
        rows = [f'[{name}]\nscript = "{name}"\ngroup = "{group}"\n' for name, group in zip("ku", table.TRACES)]
        (self.directory / "tests.toml").write_text("".join(rows))
        file = str(self.directory / "a.json")
        from suite import terminal
        with mock.patch.dict(os.environ), terminal.console.capture() as said:
            code = self.command("run", "--alloc", f"ours={self.library()}", "--programs", str(self.directory), "--table",
                                str(self.directory / "tests.toml"), "--rounds", "1", "--tests", "traces", "--json", file)
        self.assertEqual(code, 0, said.get())
        self.assertEqual([(test.name, test.group) for test in results.read(file)["run"].tests], list(zip("ku", table.TRACES)))
        summary = said.get()
        self.assertLess(summary.index("traces-known"), summary.index("traces-unseen"))
        self.assertEqual(summary.count("1 of 1"), 4)
        self.assertNotIn("all tests", summary)

    def test_compare(self):
        path = self.file(measured("a", ours=result(2), glibc=result(1)))
        self.assertEqual(self.command("compare", path, path), 0)
        self.assertEqual(self.command("compare", path, path, "--fields", "speed"), 2)


if __name__ == "__main__":
    unittest.main()
