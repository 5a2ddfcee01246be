"""The command `run`: environment, exit status, refusals; and a process that asks for its own statistics."""

import json
import os
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


def test_missing_library_is_named(command):
    assert "there is no such file" in command("run", "true", env={"MIMALLOC_LIBRARY": "/gone/libmimalloc.so"}, status=2).stderr


def test_bad_values(command):
    assert "is no size" in command("run", "--limit", "many", "true", status=2).stderr
    assert "must be more than 0" in command("run", "--limit", "0", "true", status=2).stderr
    command("run", "--guard", "0", "true", status=2)
    command("run", status=2)


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

WRITES = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void on_signal(int sig) {
  (void)sig;
  FILE* file = fopen(getenv("MIMALLOC_PROFILE"), "w");
  fputs("profile", file);
  fclose(file);
}
int main(int argc, char** argv) {
  if (argc > 1) signal(SIGUSR2, &on_signal);
  puts("ready");
  fflush(stdout);
  for (;;) pause();
  (void)argv;
}
"""


@pytest.fixture
def profiled(tmp_path, env):
    """A program that writes a file on a signal, as a profiled one does."""
    program = compile_c(tmp_path, "writes", WRITES)
    started = []

    def start(*args, **settings):
        started.append(subprocess.Popen([program, *args], env={**env, **settings}, stdout=subprocess.PIPE, text=True))
        started[-1].stdout.readline()
        return started[-1].pid

    yield start
    for process in started:
        process.kill()
        process.communicate(timeout=60)


def test_profile_of_a_process(command, profiled, tmp_path):
    target = tmp_path / "heap.pb"
    pid = profiled("handler", MIMALLOC_PROFILE=str(target), MIMALLOC_PROFILE_SIGNAL="USR2")
    assert command("profile", pid).stdout.strip() == str(target) and target.read_text() == "profile"
    assert json.loads(command("profile", pid, "--json").stdout) == [str(target)]


def test_profile_refuses_what_would_end_the_process(command, profiled, tmp_path):
    pid = profiled(MIMALLOC_PROFILE=str(tmp_path / "p"), MIMALLOC_PROFILE_SIGNAL="12")
    assert "has no handler for SIGUSR2, which would end it" in command("profile", pid, status=2).stderr
    os.kill(pid, 0)
    assert "makes no profile" in command("profile", profiled(), status=2).stderr
    assert "is no signal" in command("profile", profiled(MIMALLOC_PROFILE="x", MIMALLOC_PROFILE_SIGNAL="loud"), status=2).stderr
    assert "writes its profile when it ends" in command("profile", profiled(MIMALLOC_PROFILE="x"), status=2).stderr
    assert "There is no process" in command("profile", "4194305", status=2).stderr
