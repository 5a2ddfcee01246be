#!/usr/bin/env python3
"""Proves: what bench/trace records is what a program called, and its replay makes the same calls with any allocator.

  test_traces.py --cmake CMAKE --build-dir DIR --lib LIB     DIR: a configured build with the targets of bench

Traces are decoded here a second time, as bench/trace/trace.h describes them."""

import argparse
import collections
import os
import pathlib
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
HEADER, CHUNK = 4096, 16384
MALLOC, CALLOC, ALIGNED, REALLOC, FREE, START = range(1, 7)
WAIT = 16
FIELDS = "chunk_size threads chunks slots records blocks live_bytes live_blocks peak_bytes is_finished is_limited peak_blocks"
OWN = range(3000, 4000)  # the sizes of the program's own blocks

Record = collections.namedtuple("Record", "kind size slot align thread wait")
replayer = recorder = library = None  # set by main


class Trace:
    """A decoded file: the header's fields, and the records of each thread."""

    def __init__(self, path):
        self.data = pathlib.Path(path).read_bytes()
        assert self.data[:8] == b"MTRACE01", self.data[:8]
        for name, value in zip(FIELDS.split(), struct.unpack_from("<IIQQQQQQQIIQ", self.data, 8)):
            setattr(self, name, value)
        self.of_thread = collections.defaultdict(list)
        for i in range(self.chunks):
            self.add_chunk(HEADER + i * CHUNK)

    def add_chunk(self, start):
        magic, thread, used, _ = struct.unpack_from("<4I", self.data, start)
        assert magic == 0x4B4E4843, magic
        self.at = start + 16
        while self.at < start + 16 + used:
            self.of_thread[thread].append(self.record())

    def record(self):
        first = self.byte()
        kind, wait, size, align, thread, slot = first & ~WAIT, None, 0, 0, None, None
        if first & WAIT:
            wait = self.number(), self.number()
        if kind == START:
            thread = self.number()
        else:
            size = self.number() if kind != FREE else 0
            slot = self.number()
            align = 1 << self.number() if kind == ALIGNED else 0
        return Record(kind, size, slot, align, thread, wait)

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def number(self):
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def in_order(self):
        """All (thread, record) in an order that keeps the rules of the format."""
        done = collections.Counter()
        runnable = collections.deque([0])
        while runnable:
            thread = runnable.popleft()
            records = self.of_thread[thread]
            while done[thread] < len(records):
                record = records[done[thread]]
                if record.wait and done[record.wait[0]] < record.wait[1]:
                    runnable.append(thread)
                    break
                yield thread, record
                done[thread] += 1
                if record.kind == START:
                    runnable.append(record.thread)

    def own(self):
        """[kind, size, align, index of the block] of the calls for the program's own blocks, and the threads."""
        found, blocks, threads = [], {}, []
        for thread, r in self.in_order():
            if r.kind in (MALLOC, CALLOC, ALIGNED):
                assert r.slot not in blocks, "a slot that is in use"
                blocks[r.slot] = (r.size in OWN, len(found))
            if r.kind != START and blocks[r.slot][0]:
                found.append((r.kind, r.size, r.align, blocks[r.slot][1]))
                threads.append(thread)
            if r.kind == FREE:
                del blocks[r.slot]
        return found, threads


def varint(value):
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def file_of(threads, slots=4, records=1):
    """A file whose process was killed, so that chunks need no check; threads: the bytes of each."""
    fields = (CHUNK, len(threads), len(threads), slots, records, 0, 0, 0, 0, 0, 0, 0)
    data = (b"MTRACE01" + struct.pack("<IIQQQQQQQIIQ", *fields)).ljust(HEADER, b"\0")
    for number, text in enumerate(threads):
        data += (struct.pack("<4I", 0x4B4E4843, number, len(text), 0) + text).ljust(CHUNK, b"\0")
    return data


class Traces(unittest.TestCase):
    def setUp(self):
        temp = tempfile.TemporaryDirectory()
        self.addCleanup(temp.cleanup)
        self.directory = pathlib.Path(temp.name)
        self.file = self.directory / "a.trace"

    def run_with(self, preload, *command, preexec_fn=None, **environment):
        env = {name: value for name, value in os.environ.items() if not name.startswith(("TRACE_", "LD_"))}
        env |= {"LD_PRELOAD": str(preload)} if preload else {}
        return subprocess.run([str(one) for one in command], env=env | environment, cwd=self.directory, timeout=100,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, preexec_fn=preexec_fn)

    def record(self, *arguments, code=0, file=None, program=None, **environment):
        done = self.run_with(recorder, program or traced, *arguments, TRACE_FILE=str(file or self.file), **environment)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def replay(self, *options, file=None, preload=None):
        return self.run_with(preload, replayer, *options, file or self.file)

    def replay_alike(self, file=None):
        """The output, which is the same with the library."""
        outputs = set()
        for preload in (None, library):
            done = self.replay(file=file, preload=preload)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
            outputs.add(done.stdout)
        self.assertEqual(len(outputs), 1, outputs)
        return outputs.pop()

    def expect_refused(self, pattern, data):
        self.file.write_bytes(data)
        done = self.replay()
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertRegex(done.stderr, pattern)
        self.assertIn(str(self.file), done.stderr)

    # ---- recording

    def test_calls(self):
        self.record("calls")
        trace = Trace(self.file)
        page = os.sysconf("SC_PAGESIZE")
        self.assertEqual(trace.own()[0], [
            (MALLOC, 3001, 0, 0), (CALLOC, 3003, 0, 1), (MALLOC, 3004, 0, 2), (REALLOC, 3500, 0, 0), (REALLOC, 3300, 0, 1),
            (ALIGNED, 3005, 256, 5), (ALIGNED, 3072, 64, 6), (ALIGNED, 3006, 4096, 7), (ALIGNED, 3007, page, 8),
            *((FREE, 0, 0, block) for block in (2, 0, 1, 5, 6, 7, 8)), (MALLOC, 3999, 0, 16), (FREE, 0, 0, 16)])
        self.assertEqual((trace.threads, trace.is_finished, trace.is_limited), (1, 1, 0))
        self.assertEqual(trace.records, sum(map(len, trace.of_thread.values())))
        self.assertEqual(len(trace.data), HEADER + trace.chunks * CHUNK)

    def test_free_that_is_not_seen(self):
        self.record("unseen")
        self.assertEqual([call[:2] for call in Trace(self.file).own()[0]],
                         [(MALLOC, 3001), (FREE, 0), (MALLOC, 3001), (FREE, 0)])
        self.replay_alike()

    def test_many_live_blocks(self):
        """The table of addresses grows, and loses none."""
        self.record("table")
        trace = Trace(self.file)
        self.assertTrue(50000 <= trace.peak_blocks < 50100 and trace.live_blocks < 10, (trace.peak_blocks, trace.live_blocks))
        self.assertGreaterEqual(trace.records, 100000)

    def test_replay_makes_the_same_calls(self):
        self.record("calls")
        again = self.directory / "b.trace"
        done = self.record(self.file, program=replayer, file=again)
        first, second = Trace(self.file), Trace(again)
        self.assertEqual(second.of_thread, first.of_thread)
        self.assertEqual((second.blocks, second.peak_bytes, second.live_blocks),
                         (first.blocks, first.peak_bytes, first.live_blocks))
        self.assertEqual(self.replay_alike(), done.stdout)

    def test_threads(self):
        self.record("threads")
        again = self.directory / "b.trace"
        self.record(self.file, program=replayer, file=again)
        for trace in (Trace(self.file), Trace(again)):
            calls, threads = trace.own()
            counts = collections.Counter((kind, size) for kind, size, _, _ in calls)
            expected = collections.Counter({(MALLOC, 3000 + i): 4 * 40 for i in range(50)})
            self.assertEqual(counts, expected + collections.Counter({(REALLOC, 3100): 1000, (FREE, 0): 8000}))
            self.assertEqual(trace.threads, 5)
            makers = {i: threads[i] for i, call in enumerate(calls) if call[0] == MALLOC}
            self.assertTrue(all(makers[block] != threads[i] for i, (kind, *_, block) in enumerate(calls) if kind == FREE))
        outputs = {self.replay_alike() for _ in range(3)}
        self.assertEqual(len(outputs), 1)

    def test_fork(self):
        self.record("fork", file=self.directory / "%p.x")
        traces = [Trace(path) for path in sorted(self.directory.glob("*.x"))]
        self.assertEqual(sorted([call[:2] for call in trace.own()[0]] for trace in traces),
                         [[(MALLOC, 3001), (FREE, 0), (MALLOC, 3003), (FREE, 0)], [(MALLOC, 3002), (FREE, 0)]])
        for path in self.directory.glob("*.x"):
            self.replay_alike(path)

    def test_fork_into_one_file(self):
        self.record("fork")
        self.assertEqual([call[:2] for call in Trace(self.file).own()[0]],
                         [(MALLOC, 3001), (FREE, 0), (MALLOC, 3003), (FREE, 0)])

    def test_fork_past_handlers(self):
        self.record("past-handlers")
        self.assertEqual([call[:2] for call in Trace(self.file).own()[0]],
                         [(MALLOC, 3001), (FREE, 0), (MALLOC, 3003), (FREE, 0)])
        self.replay_alike()

    def test_programs_of_one_process(self):
        self.record("again", file=self.directory / "%p.x")
        first, second = sorted(self.directory.glob("*.x"), key=lambda path: len(path.name))
        self.assertEqual(second.name, first.name.replace(".x", ".2.x"))
        self.assertEqual([call[:2] for call in Trace(first).own()[0]], [(MALLOC, 3001), (FREE, 0)])
        self.assertEqual(len(Trace(second).own()[0]), 18)

    def test_child_without_a_place(self):
        """The child goes on, and says that it is not recorded."""
        (self.directory / "folder").mkdir()
        done = self.record("removed", file=self.directory / "folder" / "%p.x")
        self.assertRegex(done.stderr, r"\.x: No such file or directory; process \d+ is not recorded, and goes on")

    def test_process_that_ends_without_exit(self):
        self.record("quit")
        trace = Trace(self.file)
        self.assertEqual((trace.is_finished, len(trace.own()[0])), (0, 20))
        self.assertIn("did not end by exit", self.replay("--info").stdout)
        self.replay_alike()

    # Its number is taken; whether another thread has said so depends on when the process was killed.
    def test_process_that_is_killed_as_a_thread_begins(self):
        new, free, start = bytes([MALLOC]) + varint(3000) + varint(1), bytes([FREE, 1]), bytes([START, 1])
        for records in (new + free, new + free + start):
            data = bytearray(file_of([records]))
            struct.pack_into("<I", data, len("MTRACE01") + 4, 2)
            self.file.write_bytes(data)
            self.assertIn("2 threads", self.replay("--info").stdout)
            self.replay_alike()

    def test_limit(self):
        done = self.record("many", "300000", TRACE_LIMIT="1M")
        self.assertRegex(done.stderr, r"a\.trace: TRACE_LIMIT is reached; the recording ends here")
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertTrue(HEADER + CHUNK < os.path.getsize(self.file) <= 1 << 20)
        self.assertEqual((Trace(self.file).is_limited, Trace(self.file).is_finished), (1, 1))
        self.assertIn("cut at the limit", self.replay("--info").stdout)
        self.replay_alike()

    def test_limit_of_the_system(self):
        """The text of the error takes memory where the program has set a locale."""
        def limit(most, action):
            signal.signal(signal.SIGXFSZ, action)
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        for action in (signal.SIG_DFL, signal.SIG_IGN):
            self.file.unlink(missing_ok=True)
            done = self.record("many", "300000", LC_ALL="C.UTF-8", preexec_fn=lambda: limit(1 << 20, action))
            self.assertRegex(done.stderr, r"a\.trace: File too large; the recording ends here, the program goes on")
            self.replay_alike()

    def test_another_file_of_that_name(self):
        done = self.record("replaced")
        self.assertRegex(done.stderr, r"a\.trace: No such file or directory; the recording ends here, the program goes on")
        self.assertEqual(self.file.read_bytes(), b"another".ljust(4096, b"\0"))

    def test_file_is_there(self):
        self.record("calls")
        before = self.file.read_bytes()
        self.assertIn("is there already: nothing is recorded", self.record("calls").stderr)
        self.assertEqual(self.file.read_bytes(), before)

    def test_program(self):
        self.record("calls", TRACE_PROGRAM="another")
        self.assertFalse(self.file.exists())
        self.record("calls", TRACE_PROGRAM="traced")
        self.assertTrue(self.file.exists())

    def test_wrong_variables(self):
        for name, value in (("TRACE_LIMIT", "many"), ("TRACE_LIMIT", "1"), ("TRACE_LIMIT", "9999999G"), ("TRACE_LIMIT", "64MB"),
                            ("TRACE_LIMIT", ""), ("TRACE_LIMIT", "-5M"), ("TRACE_FILE", ""), ("TRACE_FILE", "/no/such/folder/x"),
                            ("TRACE_FILE", "%d"), ("TRACE_FILE", "%p%p"), ("TRACE_FILE", "x" * 5000)):
            with self.subTest(f"{name}={value[:20]}"):
                done = self.run_with(recorder, traced, "calls", **({"TRACE_FILE": str(self.file)} | {name: value}))
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertRegex(done.stderr, f"^trace-record: {name} is '")

    def test_script(self):
        """A script of bench/traces: it records once, and anew when the trace is older than its inputs."""
        script, trace = ROOT / "bench/traces/bash", self.directory / "traces/bash.trace"
        settings = {"BENCH_DATA": str(self.directory), "BENCH_PROGRAMS": str(replayer.parent)}
        for word in ("check", "setup", "setup"):
            done = self.run_with(None, script, word, **settings)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertNotIn("records", done.stdout)
        outputs = [self.run_with(None, script, "run", "page", **settings, BENCH_PRELOAD=preload) for preload in ("", str(library))]
        self.assertEqual({done.returncode for done in outputs}, {0}, outputs)
        self.assertEqual(outputs[0].stdout, outputs[1].stdout)
        self.assertIn(f"{Trace(trace).records} records of 1 threads", outputs[0].stdout)
        os.utime(trace, (0, 0))
        self.assertIn("records", self.run_with(None, script, "setup", **settings).stdout)

    # ---- files that are not right

    def test_damaged_files(self):
        self.record("many", "20000")
        data = self.file.read_bytes()
        self.expect_refused("is not a trace", b"")
        self.expect_refused("is not a trace", b"#!/bin/sh\n" * 1000)
        self.expect_refused("cut off in its header", data[:20])
        for cut in (HEADER, HEADER + 100, HEADER + CHUNK, len(data) - 1):
            self.expect_refused("is cut off: it should have [0-9]+ chunks", data[:cut])
        for at in (HEADER, HEADER + 4, HEADER + 8, HEADER + 100, HEADER + CHUNK + 5000):
            self.expect_refused("chunk [12] is damaged", data[:at] + bytes([data[at] ^ 64]) + data[at + 1:])
        self.expect_refused("its header is damaged", data[:9] + b"\0" + data[10:])
        self.expect_refused("has no records", file_of([b""], records=0))

    def test_records_that_cannot_be(self):
        new = bytes([MALLOC]) + varint(3000) + varint(1)
        free = bytes([FREE, 1])
        wait = bytes([FREE | WAIT]) + varint(1) + varint(5) + varint(1)
        start = bytes([START, 1])
        for pattern, threads in (
                ("record 1 of thread 0 is about a block that is not there", [free]),
                ("record 3 of thread 0 is about a block that is not there", [new + free + free]),
                ("record 2 of thread 0 uses a slot that is in use", [new + new]),
                ("chunk 1 has a number that is too large", [bytes([MALLOC, 1, 4])]),
                ("chunk 1 has a number that is too large", [bytes([START, 2]), b""]),
                ("chunk 1 has a record of no kind", [b"\x07\x01\x01"]),
                ("chunk 1 ends within a record", [new[:-1]]),
                ("record 2 of thread 0 waits for one that does not come", [start + wait, bytes([MALLOC, 8, 1])]),
                ("record 2 of thread 0 starts a thread again", [start + start, b""]),
                ("thread 1 is not started", [new, b""])):
            with self.subTest(pattern):
                self.expect_refused(pattern, file_of(threads))
        self.file.write_bytes(file_of([new + free]))
        self.replay_alike()

    def test_arguments(self):
        self.record("calls")
        for arguments, pattern in ((["--touch=some", self.file], "--touch is 'some'"), ([], "usage"), (["--fast", self.file], "usage"),
                                   ([self.file, self.file], "usage")):
            done = self.run_with(None, replayer, *arguments)
            self.assertEqual(done.returncode, 2)
            self.assertRegex(done.stderr, pattern)
        done = self.run_with(None, replayer, "no.trace")
        self.assertEqual((done.returncode, done.stderr), (1, "trace-replay: no.trace: No such file or directory\n"))

    # ---- what a replay finds and tells

    def test_broken_allocators(self):
        self.record("calls")
        for define, pattern in (("-DDIRTY", "calloc: the first word is not 0"), ("-DTWICE", "the (first|last) word of a block has changed"),
                                ("-DLOSES", "the first word of a block has changed")):
            with self.subTest(define):
                broken = self.directory / f"broken{define}.so"
                subprocess.run([cc, "-shared", "-fPIC", "-O1", "-fno-builtin", "-w", define, HERE / "broken.c", "-o", broken], check=True)
                done = self.replay(preload=broken)
                self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
                self.assertRegex(done.stdout, f"^FAILED: {pattern}")

    def test_report(self):
        self.record("many", "20000")
        for touch in ("ends", "page", "line"):
            done = self.replay("--report", f"--touch={touch}")
            self.assertEqual(done.returncode, 0, done.stderr)
            told = dict(pair.split("=") for pair in done.stderr.split())
            self.assertEqual(int(told["live_peak_kib"]), Trace(self.file).peak_bytes >> 10)
            self.assertGreaterEqual(int(told["samples"]), 20000 * 2 // 1024)
            self.assertTrue(0 < int(told["end_kib"]) <= int(told["peak_kib"]) < 4096, told)
            self.assertGreater(float(told["rss_live"]), 1)
            self.assertGreaterEqual(float(told["cpu_s"]), 0)
            self.assertEqual(done.stdout, self.replay().stdout)


def main():
    global replayer, recorder, library, traced, cc
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cmake", required=True)
    parser.add_argument("--build-dir", required=True)
    parser.add_argument("--lib", required=True)
    options, others = parser.parse_known_args()
    cc = shutil.which("cc")
    if not cc:
        print("SKIP bench-traces: there is no C compiler")
        sys.exit(77)
    subprocess.run([options.cmake, "--build", options.build_dir, "--target", "bench-trace-replay", "bench-trace-record"],
                   check=True, stdout=subprocess.DEVNULL)
    programs = pathlib.Path(options.build_dir).resolve() / "bench"
    replayer, recorder = programs / "trace-replay", programs / "trace-record.so"
    library = pathlib.Path(options.lib).resolve()
    with tempfile.TemporaryDirectory() as directory:
        traced = pathlib.Path(directory) / "traced"
        subprocess.run([cc, "-O1", "-fno-builtin", "-w", "-pthread", HERE / "traced.c", "-o", traced], check=True)
        unittest.main(argv=[sys.argv[0], *others])


if __name__ == "__main__":
    main()
