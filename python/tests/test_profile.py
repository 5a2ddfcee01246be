"""Heap profiles: reading, names of functions, and the commands flame, folded, diff and leaks."""

import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from conftest import compile_c
from pprof_writer import Writer

from mimalloc import pprof, reports, symbols
from mimalloc.errors import ToolError
from mimalloc.proto import write

MIB = 1 << 20


def write_file(path, writer, zipped=False):
    path.write_bytes(writer.data(zipped))
    return path


@pytest.fixture
def simple(tmp_path):
    w = Writer()
    w.named(["main", "load", "read_file", "malloc"], [10, 10 * MIB, 4, 4 * MIB])
    w.named(["main", "load", "parse", "operator new(unsigned long)"], [100, 2 * MIB, 50, MIB], packed=False)
    w.named(["main", "serve"], [5, MIB, 0, 0])
    return write_file(tmp_path / "simple.pb", w)


def test_read(simple, tmp_path):
    profile = pprof.read(simple)
    assert [name for name, _ in profile.types] == ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"]
    assert profile.index() == 3 and profile.index("alloc_space") == 1 and profile.period == 512 * 1024
    assert reports.stacks(profile, 3) == {("main", "load", "read_file"): 4 * MIB, ("main", "load", "parse"): MIB}
    zipped = tmp_path / "zipped.pb.gz"
    import gzip
    zipped.write_bytes(gzip.compress(simple.read_bytes()))
    assert reports.stacks(pprof.read(zipped), 1) == reports.stacks(profile, 1)


@pytest.mark.parametrize("change, text", [
    (lambda data: data[:-3], "no profile of pprof|cut off"),
    (lambda data: b"", "no sample types"),
    (lambda data: b"hello, this is no profile", "no profile of pprof"),
    (lambda data: b"\x1f\x8b\x08" + data, "damaged"),
    (lambda data: data + b"\x12\x02\x10\x05", "has not 4 values"),
])
def test_damaged_files_are_named(simple, tmp_path, change, text):
    (tmp_path / "bad.pb").write_bytes(change(simple.read_bytes()))
    with pytest.raises(ToolError, match=text):
        pprof.read(tmp_path / "bad.pb")


def test_every_cut_is_noticed_or_read(simple, tmp_path):
    """No part of a file leads to anything but a profile or a sentence."""
    data = simple.read_bytes()
    for n in range(0, len(data), 3):
        (tmp_path / "cut.pb").write_bytes(data[:n])
        try:
            pprof.read(tmp_path / "cut.pb")
        except ToolError as error:
            assert "cut.pb" in str(error)


def test_missing_file_and_type(command, simple):
    assert "cannot be read" in command("leaks", "/gone.pb", status=2).stderr
    run = command("folded", simple, "--type", "cpu", status=2)
    assert "has no values cpu. It has: alloc_objects" in run.stderr


# ---- reports --------------------------------------------------------------------------------------------------------

def test_folded(command, simple):
    assert command("folded", simple).stdout.splitlines() == [f"main;load;parse {MIB}", f"main;load;read_file {4 * MIB}"]
    rows = json.loads(command("folded", simple, "--type", "alloc_objects", "--json").stdout)
    assert {"stack": ["main", "serve"], "amount": 5} in rows and len(rows) == 3


def test_leaks(command, simple):
    lines = command("leaks", simple).stdout.splitlines()
    assert lines[0] == "5.0 MiB in use, from 2 stacks"
    assert lines[2] == "4.0 MiB in 4 blocks (80%)" and lines[3].strip() == "read_file"
    found = json.loads(command("leaks", simple, "--json").stdout)
    assert found["bytes"] == 5 * MIB and found["stacks"][0] == {"bytes": 4 * MIB, "blocks": 4, "stack": ["read_file", "load", "main"]}
    assert "--rows shows more" in command("leaks", simple, "--rows", "1").stdout


def test_leaks_needs_what_is_in_use(command, tmp_path):
    w = Writer([("alloc_space", "bytes")])
    w.named(["main"], [5])
    assert "does not say what is in use" in command("leaks", write_file(tmp_path / "p.pb", w), status=2).stderr


def test_diff(command, simple, tmp_path):
    w = Writer()
    w.named(["main", "load", "read_file"], [10, 10 * MIB, 6, 6 * MIB])
    w.named(["main", "serve"], [5, MIB, 1, MIB])
    after = write_file(tmp_path / "after.pb", w)
    found = {row["function"]: (row["self"], row["total"]) for row in json.loads(command("diff", simple, after, "--json").stdout)["functions"]}
    assert found == {"read_file": (2 * MIB, 2 * MIB), "parse": (-MIB, -MIB), "serve": (MIB, MIB), "load": (0, MIB), "main": (0, 2 * MIB)}
    text = command("diff", simple, after).stdout
    assert re.search(r"\+2\.0 MiB\s+\+2\.0 MiB\s+read_file", text) and re.search(r"-1\.0 MiB\s+-1\.0 MiB\s+parse", text)
    assert "do not differ" in command("diff", simple, simple).stdout


NAMES = ["ma\nin", "\x1b]0;title\x07load", "caf\u00e9", "\\[/red]x"]
SHOWN = ["ma?in", "?]0;title?load", "caf\u00e9", "\\[/red]x"]


def test_names_that_say_something_to_others(command, simple, tmp_path):
    """To a terminal, to who reads lines, to what colours tables; and letters that the output has not."""
    w = Writer()
    w.named(NAMES, [10, 1000, 4, 400])
    odd = write_file(tmp_path / "odd.pb", w)
    assert command("folded", odd).stdout == ";".join(SHOWN).replace("?]0;", "?]0:") + " 400\n"
    assert [line.strip() for line in command("leaks", odd).stdout.splitlines()[3:]] == SHOWN[::-1]
    assert {line.split()[-1] for line in command("diff", simple, odd).stdout.splitlines()} >= {*SHOWN}
    _, text = command.in_terminal("diff", simple, odd)
    assert "]0;title" in text and "\x1b]0" not in text and r"\[/red]x" in text
    for name in ("leaks", "folded", "diff"):
        run = command(name, odd, *([simple] if name == "diff" else []), env={"PYTHONIOENCODING": "ascii"})
        assert r"caf\xe9" in run.stdout


def test_file_name_that_is_no_text(command, simple):
    odd = os.fsencode(simple.parent) + b"/\xff.pb"
    simple.rename(os.fsdecode(odd))
    run = subprocess.run([sys.executable, "-m", "mimalloc", "flame", odd], env=command.env, capture_output=True, check=True)
    assert run.stdout == odd[:-3] + b".html\n"
    assert "5.0 MiB in ?.pb" in pathlib.Path(os.fsdecode(run.stdout.strip())).read_text(encoding="utf-8")


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.scripts, self.kind, self.links = {}, None, []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "script":
            self.kind = attrs.get("type", "javascript")
            self.scripts[self.kind] = ""
        self.links += [attrs[name] for name in ("src", "href") if name in attrs]

    def handle_endtag(self, tag):
        self.kind = None

    def handle_data(self, data):
        if self.kind:
            self.scripts[self.kind] += data


def test_flame(command, tmp_path):
    w = Writer()
    w.named(["main", "std::map<int, char>::insert", "</script><b>"], [1, 10, 1, 10])
    w.named(["main"] + [f"deep{i}" for i in range(3000)], [1, 30, 1, 30])
    source = write_file(tmp_path / "a.pb", w)
    assert command("flame", source).stdout.strip() == str(tmp_path / "a.html")
    page = Page((tmp_path / "a.html").read_text())
    assert page.links == []     # all of it is in one file
    text = page.scripts["application/json"]
    assert text.count('"n":') == 3004 and "</script" not in text
    if shutil.which("node"):
        code = ("const t=JSON.parse(require('fs').readFileSync(0,'utf8')); const c=t.c[0].c.find(x=>x.n.startsWith('std'));"
                "console.log(t.v, t.c[0].n, c.c[0].n, c.v)")
        run = subprocess.run(["node", "-e", code], input=text, capture_output=True, text=True, timeout=60, check=True)
        assert run.stdout.split() == ["40", "main", "</script><b>", "10"]
        run = subprocess.run(["node", "--check", "-"], input=page.scripts["javascript"], capture_output=True, text=True, timeout=60, check=False)
        assert run.returncode == 0, run.stderr
    else:
        small = Writer()
        small.named(["main", "f"], [1, 10, 1, 10])
        write_file(source, small)
        command("flame", source, "-o", tmp_path / "b.html")
        assert json.loads(Page((tmp_path / "b.html").read_text()).scripts["application/json"])["v"] == 10


def test_flame_that_cannot_be_written(command, simple):
    assert "cannot be written" in command("flame", simple, "-o", "/gone/flame.html", status=2).stderr


# ---- names of functions ---------------------------------------------------------------------------------------------

SOURCE = """#include <stdio.h>
__attribute__((noinline)) static int inner_function(int n) { return n * 3 + (int)printf(" "); }
__attribute__((noinline)) int outer_function(int n) { return inner_function(n) + 1; }
int main(void) { return outer_function(2) > 100; }
"""


def symbol_address(path, name):
    for line in subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout.splitlines():
        if line.endswith(f" {name}"):
            return int(line.split()[0], 16)
    raise AssertionError(name)


def program_profile(directory, path, build_id="", base=0x555500000000):
    """A stack of two functions of a program, as a process has it that is mapped at `base`."""
    # From the start of the file on, as its first mapping is.
    w = Writer()
    mapping = w.mapping(base, base + (1 << 20), 0, str(path), build_id)
    stack = [base + symbol_address(path, name) + 5 for name in ("inner_function", "outer_function")]
    w.sample([w.location(address, mapping) for address in stack], [1, 64, 1, 64])
    return write_file(directory / "program.pb", w)


@pytest.fixture
def program(tmp_path):
    if shutil.which("nm") is None:
        pytest.skip("there is no nm")
    return compile_c(tmp_path, "program", SOURCE)


def test_names_by_a_tool(program, tmp_path, command):
    source = program_profile(tmp_path, program, symbols.build_id(program))
    assert command("folded", source).stdout == "outer_function;inner_function 64\n"


def test_names_by_the_symbol_table(program, tmp_path, monkeypatch):
    monkeypatch.setattr(symbols.shutil, "which", lambda name: None)
    source = program_profile(tmp_path, program)
    assert list(reports.stacks(reports.load(source, True), 3)) == [("outer_function", "inner_function")]


def test_another_build_has_no_names(program, tmp_path, command):
    """A file that has changed since would give wrong names."""
    if not symbols.build_id(program):
        pytest.skip("the linker makes no build ids")
    source = program_profile(tmp_path, program, "00" * 20)
    assert re.fullmatch(r"program\+0x[0-9a-f]+;program\+0x[0-9a-f]+ 64\n", command("folded", source).stdout)
    assert re.fullmatch(r"program\+0x[0-9a-f]+;program\+0x[0-9a-f]+ 64\n", command("folded", source, "--no-symbols").stdout)


def test_programs_that_were_cut_off_have_offsets(program, tmp_path, command):
    whole = program.read_bytes()
    source = program_profile(tmp_path, program, symbols.build_id(program))
    for data in (whole[:len(whole) - 200], whole[:len(whole) // 2], whole[:64], whole[:64] + b"\xa5" * 20000):
        program.write_bytes(data)
        assert command("folded", source).stdout.endswith(" 64\n")


def test_names_of_a_program_whose_path_is_no_text(tmp_path, command):
    place = pathlib.Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    place.mkdir()
    program = compile_c(place, "program", SOURCE)
    w = Writer()
    mapping = w.mapping(0, 1 << 20, 0, "PATH")
    w.sample([w.location(symbol_address(program, "outer_function") + 5, mapping)], [1, 64, 1, 64])
    path = os.fsencode(program)
    data = w.data().replace(write(6, b"PATH"), write(6, path))
    (tmp_path / "p.pb").write_bytes(data)
    assert command("folded", tmp_path / "p.pb").stdout == "outer_function 64\n"


def test_missing_programs_have_offsets(tmp_path, command):
    w = Writer()
    mapping = w.mapping(0x1000, 0x2000, 0x400, "/gone/prog")
    w.sample([w.location(0x1010, mapping), w.location(0x9999)], [1, 64, 1, 64])
    assert command("folded", write_file(tmp_path / "p.pb", w)).stdout == "0x9999;prog+0x410 64\n"
