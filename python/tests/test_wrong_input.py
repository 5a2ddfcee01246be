"""What people get wrong: each command says it in a sentence, with an exit status other than 0."""

import json
import os
import resource
import subprocess
import sys

import pytest
from pprof_writer import Writer

AMOUNT = {"current": 1, "peak": 2, "total": 3}
NO_PROCESS = "4194305"
PROFILE_COMMANDS = ("leaks", "folded", "flame")


def refusal(command, *args, status=2, **more):
    """The sentence on standard error."""
    run = command(*args, status=status, **more)
    assert "Traceback" not in run.stderr and run.stderr.strip(), run.stderr
    return run.stderr


@pytest.fixture
def profile(tmp_path):
    w = Writer()
    w.named(["main", "load", "malloc"], [10, 1000, 4, 400])
    (tmp_path / "heap.pb").write_bytes(w.data(False))
    return tmp_path / "heap.pb"


@pytest.mark.parametrize("name", ["top", "stats", "profile", "leaks", "flame", "folded", "diff", "doctor", "export", "run", "bench"])
def test_option_that_is_none(command, name):
    assert "No such option: --no-such-option" in refusal(command, name, "--no-such-option", "true")


@pytest.mark.parametrize("seconds", ["nan", "inf", "1e300", "-1"])
def test_time_that_nobody_can_wait(command, seconds):
    assert "Invalid value for '--interval'" in refusal(command, "top", "--interval", seconds, "--count", "2")
    assert "Invalid value for '--wait'" in refusal(command, "profile", "1", "--wait", seconds)


@pytest.mark.parametrize("name", PROFILE_COMMANDS)
def test_profile_that_is_none(command, tmp_path, name):
    (tmp_path / "text").write_text("hello")
    assert "is no profile of pprof" in refusal(command, name, tmp_path / "text")
    assert "is no profile of pprof" in refusal(command, name, "/dev/null")
    assert "cannot be read: No such file" in refusal(command, name, tmp_path / "gone")
    assert "is a directory" in refusal(command, name, tmp_path)


@pytest.mark.parametrize("name", ["leaks", "stats"])
def test_file_without_an_end(command, tmp_path, name):
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 35)
    for path in (tmp_path / "huge", "/dev/zero"):
        assert "is larger than 256 MiB" in refusal(command, name, path)


def test_flame_graph_in_place_of_the_profile(command, profile):
    named = profile.rename(profile.with_suffix(".html"))
    before = named.read_bytes()
    assert "is the profile itself" in refusal(command, "flame", named)
    assert "is the profile itself" in refusal(command, "flame", named, "-o", named)
    assert named.read_bytes() == before


def test_flame_graph_that_cannot_be_written(command, profile):
    assert "cannot be written: No such file" in refusal(command, "flame", profile, "-o", "/gone/x.html")
    assert "cannot be written: No space" in refusal(command, "flame", profile, "-o", "/dev/full")


def test_flame_graph_that_has_no_space(command, profile, tmp_path):
    """What was there stays, and nothing else is left."""
    target = tmp_path / "graphs" / "x.html"
    target.parent.mkdir()
    target.write_text("before")
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))     # noqa: E731  as a disk that is full
    assert "x.html cannot be written: File too large" in refusal(command, "flame", profile, "-o", target, preexec_fn=limit,
                                                                 env={"PYTHONDONTWRITEBYTECODE": "1"})
    assert target.read_text() == "before" and list(target.parent.iterdir()) == [target]
    command("flame", profile, "-o", target)
    assert "<html" in target.read_text() and list(target.parent.iterdir()) == [target]


@pytest.mark.parametrize("fields, option", [
    ({"committed": {}}, None), ({"committed": {"current": "x", "peak": 1, "total": 2}}, None), ({"committed": AMOUNT, "threads": "many"}, None),
    ({"committed": AMOUNT, "malloc_bins": 5}, "--bins"), ({"committed": AMOUNT, "malloc_bins": [5]}, "--bins"),
    ({"committed": AMOUNT, "page_bins": [{}]}, "--bins"), ({"committed": {**AMOUNT, "peak": 10**4000}}, None),
    ({"committed": AMOUNT, "malloc_bins": [{**AMOUNT, "block_size": "x"}]}, "--bins")])
def test_json_of_another_form(command, tmp_path, fields, option):
    (tmp_path / "other.json").write_text(json.dumps(fields))
    assert "is JSON, but no statistics" in refusal(command, "stats", tmp_path / "other.json", *([option] if option else []))


@pytest.mark.parametrize("data", [b"[" * 100000, b'{"committed": {"current": NaN, "peak": 1, "total": 2}}', b"\xff\xfe", b""])
def test_what_is_no_json(command, tmp_path, data):
    (tmp_path / "other").write_bytes(data)
    assert "neither a published page nor JSON" in refusal(command, "stats", tmp_path / "other")
    with (tmp_path / "other").open("rb") as file:
        assert "neither a published page nor JSON" in refusal(command, "stats", "-", stdin=file)


def test_json_with_fields_of_others(command, tmp_path):
    for more in ({"pid": 5, "of_the_future": {"x": []}}, {"age_seconds": 1}, {"age_seconds": "x"}):
        (tmp_path / "more.json").write_text(json.dumps({"committed": AMOUNT, **more}))
        assert "committed" in command("stats", tmp_path / "more.json").stdout
    assert "cannot be read: No such file" in refusal(command, "stats", "\u00b2")


@pytest.mark.parametrize("args", [("stats",), ("top",), ("profile",), ("doctor", "--pid")])
def test_process_that_is_not_there(command, args):
    assert f"There is no process {NO_PROCESS}." in refusal(command, *args, NO_PROCESS)


def test_process_that_does_not_publish(command, start_victim):
    start_victim()
    for name in ("stats", "top"):
        assert f"Process {os.getpid()} publishes no statistics" in refusal(command, name, str(os.getpid()))


def test_process_without_variables(command):
    """It is ours: that it has none does not make it another user's."""
    process = subprocess.Popen(["/usr/bin/env", "-i", "sleep", "60"])
    try:
        assert "waits for no signal" in refusal(command, "profile", str(process.pid))
    finally:
        process.kill()
        process.wait()


@pytest.mark.skipif(os.getuid() != 0, reason="only root has processes of other users")
def test_process_of_another_user(env, library):
    process = subprocess.Popen(["sleep", "60"])
    try:
        for args in (["profile", str(process.pid)], ["doctor", "--pid", str(process.pid)]):
            run = subprocess.run(["setpriv", "--reuid", "65534", "--clear-groups", "/usr/bin/python3", "-B", "-m", "mimalloc", *args], env=env,
                                 capture_output=True, text=True, timeout=60, check=False)
            if "Permission denied" in run.stderr or "No module named" in run.stderr:
                pytest.skip("another user may not read this tree")
            assert run.returncode in (1, 2) and "may not look into" in run.stdout + run.stderr, run.stdout + run.stderr
    finally:
        process.kill()
        process.wait()


# ---- run and bench ---------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", ["run", "bench"])
def test_programs_that_are_none(command, tmp_path, name):
    data, script = tmp_path / "data", tmp_path / "script"
    data.write_text("x")
    script.write_text("no program at all")
    script.chmod(0o755)
    assert "was not found" in refusal(command, name, "does-not-exist", status=127)
    assert "was not found" in refusal(command, name, "", status=127)
    if os.getuid() != 0:
        assert "cannot be executed" in refusal(command, name, data, status=126)
    assert "cannot be executed: Exec format error" in refusal(command, name, script, status=126)
    assert "cannot be executed" in refusal(command, name, tmp_path, status=126)


@pytest.mark.parametrize("signal", ["KILL", "STOP", "9"])
def test_signal_that_no_program_handles(command, signal):
    assert "No program can handle" in refusal(command, "run", "--profile-signal", signal, "true")


def test_profile_without_a_directory(command, tmp_path):
    assert "there is no directory" in refusal(command, "run", "--profile", tmp_path / "gone/heap", "true")


def test_profile_without_a_prefix(command):
    assert "needs a prefix" in refusal(command, "run", "--profile", "", "true")


@pytest.mark.parametrize("flags", [("--start", "--stop"), ("--stop", "--start"), ("--start", "--write")])
def test_two_requests_to_a_profile(command, flags):
    assert "one of --start, --stop and --write" in refusal(command, "profile", *flags, NO_PROCESS)


@pytest.mark.parametrize("limit", ["0%", "101%", "-5%", "%", "50%%", "1.5%", "0", "much", "inf", "1e400", "nan"])
def test_limit_that_is_none(command, limit):
    assert f"'{limit}' is no limit" in refusal(command, "run", f"--limit={limit}", "true")


@pytest.mark.parametrize("name", ["run", "bench"])
def test_library_that_is_none(command, tmp_path, name):
    (tmp_path / "libmimalloc.so").write_text("no library")
    assert "cannot be preloaded" in refusal(command, name, "true", env={"MIMALLOC_LIBRARY": str(tmp_path / "libmimalloc.so")})


def test_another_library_that_is_none(command):
    for other in ("/gone/other.so", b"/gone/\xff.so"):
        run = command("run", "echo", "served", env={"LD_PRELOAD": other})
        assert run.stdout == "served\n" and "/gone/" in run.stderr     # which the loader says


# ---- standard streams ------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("args", [("leaks",), ("folded",), ("top",), ("doctor",), ("export", "--once"), ("export", "--dashboard"),
                                  ("--help",), ("--version",), ("run", "--help")])
def test_output_that_is_full(command, env, profile, args):
    words = [*args, profile] if args[0] in PROFILE_COMMANDS else args
    with open("/dev/full", "w", encoding="utf-8") as full:
        run = subprocess.run([sys.executable, "-m", "mimalloc", *map(str, words)], env=env, stdout=full, stderr=subprocess.PIPE, text=True,
                             timeout=60, check=False)
    assert run.returncode == 2 and run.stderr == "mimalloc: The output cannot be written: No space left on device.\n"


def test_closed_streams(env, profile):
    def in_shell(words):
        run = subprocess.run(["sh", "-c", f"{sys.executable} -m mimalloc {words}"], env=env, capture_output=True, text=True, timeout=60, check=False)
        assert run.returncode == 2
        return run.stderr
    for words in (f"leaks {profile}", "--help", "--version", ""):
        assert in_shell(f"{words} >&-") == "mimalloc: There is no standard output.\n"
    assert in_shell("stats - <&-") == "mimalloc: There is no standard input.\n"
