"""The commands top, stats and doctor: tables, JSON, terminals and pipes."""

import json
import os
import re
import signal
import struct
import subprocess
import sys

import pytest

from mimalloc import doctor, output

ESCAPE = "\x1b["


def test_top_in_a_pipe(command, start_victim):
    victim = start_victim()
    victim.tell("a")
    run = command("top")
    lines = run.stdout.splitlines()
    assert lines[0].split()[:3] == ["PID", "PROGRAM", "IN"] and len(lines) == 2
    assert str(victim.pid) in lines[1] and "victim" in lines[1] and ESCAPE not in run.stdout


def test_top_in_a_terminal(command, start_victim):
    victim = start_victim()
    status, text = command.in_terminal("top", "--count", "2", "--interval", "0.2")
    assert status == 0 and ESCAPE in text and str(victim.pid) in text and "COMMITTED" in text


def test_top_as_json(command, start_victim):
    victim, other = start_victim(), start_victim()
    victim.tell("a")
    rows = json.loads(command("top", "--json").stdout)
    assert {row["pid"] for row in rows} == {victim.pid, other.pid} and rows[0]["pid"] == victim.pid     # the largest first
    assert rows[0]["in_use"] >= 20000 * 600 and rows[0]["committed"] >= rows[0]["in_use"]
    assert rows[0]["resident"] > 20000 * 600 and rows[0]["program"] == "victim"
    rows = json.loads(command("top", "--json", other.pid).stdout)
    assert [row["pid"] for row in rows] == [other.pid]


def forge(path, program, *entries):
    """What a process may say of itself.  `entries`: offset, kind and count of the fields of these names."""
    with open(path, "r+b") as file:
        data = file.read()
        table, n_entries, entry_size = struct.unpack_from("=III", data, 72)
        file.seek(92)
        file.write(program.ljust(60, b"\0"))
        for at in range(table, table + n_entries * entry_size, entry_size):
            name = data[at:at + 40].split(b"\0")[0]
            if name in entries:
                file.seek(at + 44)
                file.write(struct.pack("=H", {0: 1, 1: 0}[struct.unpack_from("=H", data, at + 44)[0]]))


def test_names_cannot_control_the_terminal(command, start_victim, pages):
    victim = start_victim()
    forge(next(pages.glob("*.stats")), b"a\x1b]0;b\x07\n\xe2\x80\xae\\[bold]c[/nothing]")
    for text in (command("top").stdout, command("stats", victim.pid).stdout, command.in_terminal("top", "--count", "1")[1],
                 command.in_terminal("stats", str(victim.pid))[1], command("top", "--json").stdout):
        assert "a?]0;b???" in text and "[bold]c[/nothing]" in text and "\x1b]" not in text and "\u202e" not in text


@pytest.mark.parametrize("field", [b"committed", b"purged", b"mmap_calls", b"malloc_normal_count", b"pages"])
def test_a_page_with_fields_of_another_kind_is_shown(command, start_victim, pages, field):
    start_victim()
    forge(next(pages.glob("*.stats")), b"forged", field)
    run = command("top", "--count", "2", "--interval", "0.2")
    assert "forged" in run.stdout and not run.stderr


def test_top_without_processes(command):
    assert "No process publishes" in command("top").stdout
    assert json.loads(command("top", "--json").stdout) == []
    assert "There is no process 4194305" in command("top", "4194305", status=2).stderr


def test_stats_of_a_page_and_of_json(command, start_victim, pages, served, tmp_path):
    victim = start_victim()
    victim.tell("a")
    path = next(pages.iterdir())
    text = command("stats", path, "--bins").stdout
    assert f"pid {victim.pid}" in text and re.search(r"^in use\s+\d+\.\d MiB", text, re.M) and re.search(r"^\s+6\d\d\s+2\d \d\d\d", text, re.M)
    by_page = json.loads(command("stats", path, "--json").stdout)
    by_pid = json.loads(command("stats", victim.pid, "--json").stdout)
    assert by_pid["committed"]["current"] == by_page["committed"]["current"]
    code = "import sys, json; sys.path.insert(0, sys.argv[1]); import mimalloc; json.dump(mimalloc.stats(), sys.stdout)"
    own = subprocess.run([sys.executable, "-c", code, served["PYTHONPATH"]], env=served, capture_output=True, text=True, timeout=60, check=True)
    (tmp_path / "stats.json").write_text(own.stdout)
    by_json = json.loads(command("stats", tmp_path / "stats.json", "--json").stdout)
    # What a page has, the JSON of the library has too.
    assert set(by_json) - set(by_page) == {"stat_version", "mimalloc_version", "process"}
    assert set(by_page) - set(by_json) == {"pid", "program", "version", "file", "age_seconds", "is_ended"}
    assert "in use" in command("stats", "-", input=own.stdout).stdout


@pytest.mark.parametrize("text, said", [("nothing", "neither a published page nor JSON"), ("[1]", "no statistics"), ("{}", "no statistics")])
def test_stats_of_other_files(command, tmp_path, text, said):
    (tmp_path / "other").write_text(text)
    assert said in command("stats", tmp_path / "other", status=2).stderr


def test_stats_of_a_missing_file(command):
    assert "cannot be read" in command("stats", "/gone/file", status=2).stderr
    assert "publishes no statistics" in command("stats", str(os.getpid()), status=2).stderr


def test_closed_pipe(command, start_victim, env):
    start_victim()
    run = subprocess.run(["bash", "-c", f"set -o pipefail; {sys.executable} -m mimalloc export --once | head -n 1"], env=env,
                         capture_output=True, text=True, timeout=60, check=False)
    assert run.stderr == "" and run.stdout.startswith("# HELP")


def test_interrupt_is_quiet(env, start_victim):
    start_victim()
    process = subprocess.Popen([sys.executable, "-m", "mimalloc", "top", "--count", "1000"], env=env, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT and "Traceback" not in said


# ---- doctor ---------------------------------------------------------------------------------------------------------

def test_doctor(command, env):
    run = command("doctor", "--json")
    rows = {row["what"]: row for row in json.loads(run.stdout)}
    assert rows["library"]["state"] == "ok" and "serves" in rows["library"]["meaning"]
    assert rows["overcommit"]["value"] in "012" and "RLIMIT_AS" in rows
    assert ESCAPE not in command("doctor").stdout
    status, text = command.in_terminal("doctor")
    assert status == 0 and ESCAPE in text and "overcommit" in text


def test_doctor_names_misspelt_variables(command):
    run = command("doctor", env={"MIMALLOC_PURGE_DELLAY": "5"}, status=1)
    assert re.search(r"bad\s+MIMALLOC_PURGE_DELLAY\s+is no option\s+The nearest name is MIMALLOC_PURGE_DELAY\.", run.stdout)


def test_doctor_names_values_that_are_none(command):
    run = command("doctor", "--json", status=1, env={
        "MIMALLOC_PURGE_DELAY": "soon", "mimalloc_limit": "150%", "MIMALLOC_SHOW_ERRORS": "maybe", "MIMALLOC_MAX_WARNINGS": "0",
        "MIMALLOC_VERBOSE": "loud", "MIMALLOC_ALLOW_THP": "2", "MIMALLOC_PURGE_DELEY": "1"})
    rows = json.loads(run.stdout)
    said = {row["what"]: (row["state"], row["meaning"]) for row in rows}
    assert said["MIMALLOC_PURGE_DELAY"] == ("bad", "'soon' is not a number: it stays 10.")
    assert said["mimalloc_limit"] == ("bad", "'150%' is not between 1% and 100%: it stays 0 (none).")
    assert said["MIMALLOC_SHOW_ERRORS"] == ("bad", "'maybe' is not a number: it stays 0.")
    assert said["MIMALLOC_VERBOSE"] == ("bad", "'loud' is not a number: it stays 0.")
    assert [row["value"] for row in rows if row["what"] == "MIMALLOC_PURGE_DELEY"] == ["is no option"]
    assert "MIMALLOC_ALLOW_THP" not in said and "MIMALLOC_MAX_WARNINGS" not in said


def test_doctor_names_values_that_do_not_fit_together(command):
    run = command("doctor", env={"MIMALLOC_GUARDED_MIN": "200", "MIMALLOC_GUARDED_MAX": "100"}, status=1)
    assert re.search(r"bad\s+MIMALLOC_GUARDED_MAX\s+100\s+.*it is raised to 200", run.stdout)


def test_doctor_prints_what_it_is_given(command):
    value = r"\[/red]"
    assert value in command("doctor", env={"MIMALLOC_PURGE_DELAY": value, "LD_PRELOAD": "/gone/mimalloc/" + value}, status=1).stdout


def test_doctor_writes_no_profile(command, tmp_path):
    rows = json.loads(command("doctor", "--json", env={"MIMALLOC_PROFILE": str(tmp_path / "heap"), "MIMALLOC_RESET_DELAY": "5"}).stdout)
    assert [row["state"] for row in rows if row["what"] == "MIMALLOC_RESET_DELAY"] == ["note"]
    assert not list(tmp_path.glob("heap*"))


def test_doctor_sees_a_library_that_does_not_serve(command, tmp_path):
    (tmp_path / "libmimalloc.so").write_bytes(b"\x7fELF no library")
    run = command("doctor", env={"MIMALLOC_LIBRARY": str(tmp_path / "libmimalloc.so")}, status=1)
    assert re.search(r"bad\s+library", run.stdout)


def test_doctor_looks_at_a_process(command, start_victim):
    victim = start_victim(MIMALLOC_PURGE_DELEY="1", MIMALLOC_RETAIN="much")
    rows = json.loads(command("doctor", "--pid", victim.pid, "--json", status=1).stdout)
    about = [row for row in rows if row["what"] == f"process {victim.pid}"]
    assert [row["state"] for row in about] == ["ok", "ok"]
    assert any(row["what"] == "MIMALLOC_PURGE_DELEY" for row in rows)
    assert [row["state"] for row in rows if row["what"] == "MIMALLOC_RETAIN"] == ["bad"]
    rows = json.loads(command("doctor", "--pid", os.getpid(), "--json", status=1).stdout)
    assert any(row["value"] == "no libmimalloc" for row in rows)


def test_groups_of_both_versions(tmp_path):
    def tree(files):
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
    tree({"two": "0::/a/b\n", "v2/memory.max": "max", "v2/a/memory.max": "1000000\n", "v2/a/memory.current": "5\n",
          "v2/a/b/memory.max": "max\n", "one": "5:cpu,memory:/x\n0::/\n", "v1/memory/x/memory.limit_in_bytes": "700\n",
          "v1/memory/x/memory.usage_in_bytes": "70\n", "v1/memory/memory.limit_in_bytes": "9223372036854771712\n", "none": ""})
    assert doctor.cgroup_limits(tmp_path / "two", tmp_path / "v2") == (2, 1000000, 5)
    assert doctor.cgroup_limits(tmp_path / "one", tmp_path / "v1") == (1, 700, 70)
    assert doctor.cgroup_limits(tmp_path / "none", tmp_path) == (None, None, None)


def test_sizes():
    assert [output.size(n) for n in (0, 1023, 1024, 5 << 20, 3 << 60, None)] == ["0 B", "1023 B", "1.0 KiB", "5.0 MiB", "3.0 EiB", "-"]


# ---- bench ----------------------------------------------------------------------------------------------------------

def test_bench(command, victim_program):
    result = json.loads(command("bench", "--rounds", "2", "--json", "--", "sh", "-c", "exit 0").stdout)
    assert set(result["allocators"]) == {"system", "mimalloc"}
    for figures in result["allocators"].values():
        for value in figures.values():
            assert 0 <= value["min"] <= value["median"] <= value["max"]
    assert "medians of 1 runs" in command("bench", "--rounds", "1", "--", "true").stdout
    assert "ended with status 3 with the malloc of the system" in command("bench", "--", "sh", "-c", "exit 3", status=2).stderr
    assert "There is no program" in command("bench", status=2).stderr


def test_bench_of_a_small_program(command, tmp_path):
    """Its peak is its own, without the much larger image of the process that starts it."""
    result = json.loads(command("bench", "--rounds", "2", "--json", "--", "true").stdout)
    assert result["allocators"]["system"]["peak_bytes"]["max"] < 8 << 20
    code = "x = bytearray(b'1') * (100 << 20)"
    result = json.loads(command("bench", "--rounds", "1", "--json", "--", sys.executable, "-c", code).stdout)
    assert result["allocators"]["system"]["peak_bytes"]["max"] > 100 << 20
    (tmp_path / "script").write_text("#!/bin/sh\nread line && test \"$line $1\" = 'given argument' || exit 9\nexec true\n")
    (tmp_path / "script").chmod(0o755)
    for end in ("", "exit"):
        command("bench", "--rounds", "1", "--", "sh", "-c", f"test \"$1\" = 'a  b' || exit 9; {end}", "sh", "a  b")
    assert "was ended by signal 9" in command("bench", "--", "sh", "-c", "kill -9 $$", status=2).stderr
    given = tmp_path / "given"
    given.write_text("given\n" * 10)
    with given.open("rb") as file:
        command("bench", "--rounds", "1", "--", tmp_path / "script", "argument", stdin=file)
