"""The command `run`: environment, exit status, refusals; and a process that asks for its own statistics."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest
from conftest import compile_c

from mimalloc import library as finder
from mimalloc import options

TELL = """import json, os, sys
import mimalloc
print(json.dumps({"active": mimalloc.is_active(), "malloc": os.environ.get("PYTHONMALLOC"),
                  "blocks": mimalloc.stats()["malloc_normal_count"] if mimalloc.is_active() else None, "args": sys.argv[1:],
                  "env": {k: v for k, v in os.environ.items() if k.startswith(("MIMALLOC", "LD_PRELOAD"))}}))
sys.exit(5)
"""


@pytest.fixture
def tell(tmp_path):
    (tmp_path / "tell.py").write_text(TELL)
    return tmp_path / "tell.py"


def test_python_program(command, tell, env):
    run = command("run", tell, "-x", "--json", "b", status=5)
    said = json.loads(run.stdout)
    assert said["active"] and said["malloc"] == "malloc" and said["args"] == ["-x", "--json", "b"]
    assert said["blocks"] > 10000       # Python's own small objects are among them
    assert said["env"] == {"LD_PRELOAD": env["MIMALLOC_LIBRARY"] if not os.path.islink(env["MIMALLOC_LIBRARY"]) else
                           os.path.realpath(env["MIMALLOC_LIBRARY"]), "MIMALLOC_PUBLISH_DIR": env["MIMALLOC_PUBLISH_DIR"]}


def test_without_the_library(tell, env):
    plain = subprocess.run([sys.executable, tell], env=env, capture_output=True, text=True, timeout=60, check=False)
    assert plain.returncode == 5 and not json.loads(plain.stdout)["active"]
    code = "import mimalloc; mimalloc.stats()"
    plain = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60, check=False)
    assert "NotActive" in plain.stderr and "python -m mimalloc run" in plain.stderr


@pytest.mark.parametrize("code, status", [("exit 0", 0), ("exit 41", 41), ("kill -TERM $$", -signal.SIGTERM)])
def test_exit_status(command, code, status):
    command("run", "--", "sh", "-c", code, status=status)


def test_standard_streams(command):
    assert command("run", "cat", input="some text").stdout == "some text"


def test_statistics(command):
    run = command("run", "--stats", "--", "/bin/true")
    assert "committed" in run.stderr and run.stdout == ""


def test_options_set_their_variables(command, tell):
    said = json.loads(command("run", "--guard", "100", "--publish", "forks", tell, status=5).stdout)
    assert said["env"]["MIMALLOC_GUARDED_SAMPLE_RATE"] == "100" and said["env"]["MIMALLOC_PUBLISH"] == "2"
    assert said["env"]["MIMALLOC_SHOW_ERRORS"] == "1"


def test_guard_finds_an_overflow(command, tmp_path):
    program = compile_c(tmp_path, "overflow", "#include <stdlib.h>\nint main(void) { for (int i = 0; i < 50; i++) { volatile char* p = "
                        "malloc(32); p[40 + i % 2] = 1; } return 0; }")
    run = command("run", "--guard", "1", "--", program, status=None)
    assert run.returncode == -signal.SIGSEGV and "mimalloc: error" in run.stderr


def test_not_found(command):
    assert "does-not-exist was not found" in command("run", "--", "does-not-exist", status=127).stderr


def test_not_executable(command, tmp_path):
    (tmp_path / "data").write_text("x")
    assert "cannot be executed" in command("run", "--", tmp_path / "data", status=126).stderr


def test_static_program_is_refused(command, tmp_path):
    try:
        program = compile_c(tmp_path, "fixed", "int main(void) { return 0; }", "-static")
    except subprocess.CalledProcessError:
        pytest.skip("nothing can be linked statically here")
    assert "linked statically" in command("run", "--", program, status=2).stderr


def test_program_with_rights_of_its_own_is_refused(tmp_path, monkeypatch):
    program = pathlib.Path(shutil.copy("/bin/true", tmp_path / "true"))
    monkeypatch.setattr(os, "getuid", lambda: 65534)
    assert finder.obstacle(program) is None
    program.chmod(0o4755)
    assert "rights of another user" in finder.obstacle(program)
    program.chmod(0o755)
    monkeypatch.setattr(os, "getxattr", lambda path, name: {"security.capability": b"some"}[name])
    assert "capabilities" in finder.obstacle(program)
    monkeypatch.setattr(os, "getuid", lambda: 0)
    assert finder.obstacle(program) is None


def test_missing_library_is_named(command):
    assert "there is no such file" in command("run", "true", env={"MIMALLOC_LIBRARY": "/gone/libmimalloc.so"}, status=2).stderr


def test_bad_values(command):
    assert "is no limit" in command("run", "--limit", "many", "true", status=2).stderr
    assert "must be more than 0" in command("run", "--limit", "0", "true", status=2).stderr
    command("run", "--guard", "0", "true", status=2)
    command("run", status=2)


@pytest.mark.parametrize("directory", ["a b", "a=b c"])
def test_library_whose_path_has_a_space(command, library, tmp_path, directory):
    place = tmp_path / directory
    place.mkdir()
    env = {"MIMALLOC_LIBRARY": shutil.copy(library, place / "libmimalloc.so"), "LD_LIBRARY_PATH": "/gone"}
    assert "process init" in command("run", "--", "true", env={**env, "MIMALLOC_VERBOSE": "1"}).stderr
    assert command("run", "--", "sh", "-c", "echo $LD_LIBRARY_PATH", env=env).stdout == f"{place}:/gone\n"
    assert "mimalloc" in command("bench", "--rounds", "1", "true", env=env).stdout


def test_profile_without_a_directory_to_be_in(env, tmp_path):
    (tmp_path / "gone").mkdir()
    start = f"cd gone && rmdir ../gone && {sys.executable} -m mimalloc run --profile x true"
    run = subprocess.run(["sh", "-c", start], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert run.returncode == 2 and "the directory in which the command was started is gone" in run.stderr


def test_preload_keeps_others(library):
    env = finder.preload({"LD_PRELOAD": "/x/libmimalloc.so /y/other.so"}, library)
    assert env["LD_PRELOAD"] == f"{library}:/y/other.so"


def test_options_are_those_of_the_library(served):
    """The table of the command against what the library prints."""
    run = subprocess.run(["/bin/true"], env={**served, "MIMALLOC_VERBOSE": "1"}, capture_output=True, text=True, timeout=60, check=True)
    printed = {line.split("'")[1] for line in run.stderr.splitlines() if line.startswith("mimalloc: option '") or line.startswith("option '")}
    assert len(printed) > 30
    assert printed <= options.known()
    # Those that a library without limits or profiles lacks.
    assert {name for name in options.EFFECTIVE if not name.startswith((options.RUN_PROFILE, options.RUN_LIMIT))} - {"retain"} <= printed


def test_misspelt_options_have_a_nearest_name():
    found = options.check({"MIMALLOC_PURGE_DELEY": "1", "mimalloc_show_stat": "1", "MIMALLOC_VERBOSE": "1", "HOME": "/", "MIMALLOC_XYZ": "",
                           "MIMALLOC_OS_TAG": "3", "MIMALLOC_PUBLISH_DIR": "/"})
    assert ("MIMALLOC_PURGE_DELEY", "is no option", "MIMALLOC_PURGE_DELAY") in found
    assert ("mimalloc_show_stat", "is no option", "MIMALLOC_SHOW_STATS") in found
    assert ("MIMALLOC_XYZ", "is no option", None) in found
    assert ("MIMALLOC_OS_TAG", "has no effect", None) in found
    assert len(found) == 4


# ---- profile PID ----------------------------------------------------------------------------------------------------

WORKS = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
__attribute__((noinline)) void* keep_some(size_t n) { return memset(malloc(n), 1, n); }
int main(int argc, char** argv) {
  printf("ready\n");
  fflush(stdout);
  for (int i = 0; i < (argc > 1 ? atoi(argv[1]) : 6000); i++) {
    keep_some(30000);
    if (argc == 1) usleep(10000);
  }
  (void)argv;
  return 0;
}
"""


@pytest.fixture
def works(tmp_path):
    return compile_c(tmp_path, "works", WORKS)


@pytest.fixture
def has(served):
    """Skips a test if the library lacks an option."""
    run = subprocess.run(["/bin/true"], env={**served, "MIMALLOC_VERBOSE": "1"}, capture_output=True, text=True, timeout=60, check=True)

    def check(option):
        if f"option '{option}'" not in run.stderr:
            pytest.skip(f"the library has no option {option}")

    return check


@pytest.fixture
def started(env):
    processes = []

    def start(*args, **settings):
        processes.append(subprocess.Popen(list(map(str, args)), env={**env, **settings}, stdout=subprocess.PIPE, text=True))
        processes[-1].stdout.readline()
        return processes[-1].pid

    yield start
    for process in processes:
        process.kill()
        process.communicate(timeout=60)


def test_profile_at_the_end(command, works, tmp_path, has):
    has("profile_rate")
    command("run", "--profile", tmp_path / "heap", "--", works, "2000")
    found = list(tmp_path.glob("heap.*.pb"))
    assert len(found) == 1
    rows = json.loads(command("leaks", found[0], "--json").stdout)
    stack = rows["stacks"][0]["stack"]
    assert stack[:2] == ["keep_some", "main"], stack
    assert 30e6 < rows["bytes"] < 90e6      # of 60 MB
    assert "keep_some" in command("folded", found[0]).stdout


def test_profile_of_a_process(command, works, tmp_path, has, started):
    has("profile_signal")
    pid = started(sys.executable, "-m", "mimalloc", "run", "--profile", tmp_path / "live", "--profile-signal", "USR2", "--", works)
    assert "writes one if the profile was started" in command("profile", pid, "--wait", "1", status=2).stderr
    assert "was told to start" in command("profile", pid, "--start").stdout
    first = command("profile", pid).stdout.strip()
    second = json.loads(command("profile", pid, "--json").stdout)["file"]
    assert first != second and first.startswith(f"{tmp_path}/live.{pid}.")
    command("diff", first, second)


def test_profile_by_a_signal_without_a_name(command, works, tmp_path, has, started):
    has("profile_signal")
    pid = started(sys.executable, "-m", "mimalloc", "run", "--profile", tmp_path / "live", "--profile-signal", "40", "--", works)
    assert "was told to start" in command("profile", pid, "--start").stdout
    assert command("profile", pid).stdout.startswith(f"{tmp_path}/live.{pid}.")
    assert "has no handler for signal 41" in command("profile", started(works, MIMALLOC_PROFILE_SIGNAL="41"), status=2).stderr


def test_profile_with_signs_of_patterns_in_its_name(command, works, tmp_path, has, started):
    has("profile_signal")
    pid = started(sys.executable, "-m", "mimalloc", "run", "--profile", tmp_path / "live[1]*", "--profile-signal", "USR2", "--", works)
    command("profile", pid, "--start")
    assert command("profile", pid).stdout.startswith(f"{tmp_path}/live[1]*.{pid}.")


def test_profile_with_a_name_that_is_no_text(command, works, tmp_path, has, started):
    has("profile_signal")
    prefix = os.fsdecode(os.fsencode(tmp_path) + b"/live\xff")
    pid = started(sys.executable, "-m", "mimalloc", "run", "--profile", prefix, "--profile-signal", "USR2", "--", works)
    command("profile", pid, "--start")
    assert json.loads(command("profile", pid, "--json").stdout)["file"].startswith(f"{prefix}.{pid}.")


def test_profile_refuses_what_would_end_the_process(command, works, started):
    pid = started(works, MIMALLOC_PROFILE_SIGNAL="12")
    assert "has no handler for SIGUSR2, which would end it" in command("profile", pid, status=2).stderr
    os.kill(pid, 0)
    assert "waits for no signal" in command("profile", started(works), status=2).stderr
    assert "is no signal" in command("profile", started(works, MIMALLOC_PROFILE_SIGNAL="loud"), status=2).stderr
    assert "There is no process" in command("profile", "4194305", status=2).stderr
    assert "is no signal" in command("run", "--profile-signal", "99", "true", status=2).stderr


def test_options_that_the_library_lacks_are_named(command, env, tmp_path):
    """An older library: it would ignore them."""
    run = subprocess.run(["/bin/true"], env={**env, "LD_PRELOAD": env["MIMALLOC_LIBRARY"], "MIMALLOC_VERBOSE": "1"}, capture_output=True,
                         text=True, timeout=60, check=True)
    for option, proof, value in (("limit", "limit", "1G"), ("profile", "profile_rate", tmp_path / "p")):
        if f"option '{proof}'" in run.stderr:
            command("run", f"--{option}", value, "true")
        else:
            assert f"has no option MIMALLOC_{option.upper()}" in command("run", f"--{option}", value, "true", status=2).stderr


def test_limit(command, works, has):
    has("limit")
    code = "import sys\ntry:\n    x = bytearray(400 << 20)\nexcept MemoryError:\n    sys.exit(33)"
    command("run", "--limit", "100M", "--", sys.executable, "-c", code, status=33)
    command("run", "--limit", "1G", "--", sys.executable, "-c", code, status=0)
    seen = command("run", "--limit", "80%", "--", "/usr/bin/env").stdout
    assert "MIMALLOC_LIMIT=80%\n" in seen
