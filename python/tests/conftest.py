"""What the tests share: the library of the build at hand, small programs, and the command as people start it."""

import os
import pathlib
import pty
import select
import shutil
import subprocess
import sys
import time

import pytest

PYTHON_DIR = pathlib.Path(__file__).resolve().parent.parent
ROOT = PYTHON_DIR.parent
WAIT = 60   # seconds, on a machine with much else to do

sys.path.insert(0, str(PYTHON_DIR))


@pytest.fixture(scope="session")
def library():
    path = os.environ.get("MI_COMMAND_LIBRARY", str(ROOT / "build/release/libmimalloc.so"))
    if not pathlib.Path(path).is_file():
        pytest.skip(f"the library is not built: {path}")
    return path


@pytest.fixture
def pages(tmp_path):
    """A directory for published pages, apart from those of others."""
    path = tmp_path / "pages"
    path.mkdir()
    return path


@pytest.fixture
def env(library, pages):
    base = {name: value for name, value in os.environ.items() if not name.startswith(("MIMALLOC_", "LD_PRELOAD", "XDG_RUNTIME_DIR"))}
    return {**base, "MIMALLOC_LIBRARY": library, "MIMALLOC_PUBLISH_DIR": str(pages), "PYTHONPATH": str(PYTHON_DIR), "TERM": "xterm",
            "COLUMNS": "160"}


@pytest.fixture
def served(env, library):
    """The environment of a program that has the library preloaded."""
    return {name: value for name, value in {**env, "LD_PRELOAD": library}.items() if name != "MIMALLOC_LIBRARY"}


class Command:
    def __init__(self, env):
        self.env = env

    def __call__(self, *args, status=0, timeout=WAIT, env=None, **more):
        run = subprocess.run([sys.executable, "-m", "mimalloc", *map(str, args)], env={**self.env, **(env or {})}, timeout=timeout,
                             capture_output=True, encoding="utf-8", errors="replace", check=False, **more)
        assert status is None or run.returncode == status, f"status {run.returncode}\n{run.stdout}{run.stderr}"
        return run

    def in_terminal(self, *args, timeout=WAIT):
        """(exit status, output) with a terminal as standard output."""
        main, side = pty.openpty()
        process = subprocess.Popen([sys.executable, "-m", "mimalloc", *map(str, args)], env=self.env, stdin=side, stdout=side,
                                   stderr=side, close_fds=True)
        os.close(side)
        text, end = b"", time.monotonic() + timeout
        while time.monotonic() < end:
            if not select.select([main], [], [], 0.1)[0]:
                if process.poll() is not None:
                    break
                continue
            try:
                part = os.read(main, 65536)
            except OSError:
                break
            if not part:
                break
            text += part
        os.close(main)
        return process.wait(timeout=timeout), text.decode()


@pytest.fixture
def command(env):
    return Command(env)


VICTIM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Does what each line of standard input says, and answers.
static void* blocks[100000];
int main(void) {
  char line[100];
  size_t n = 0;
  printf("%d\n", (int)getpid());
  fflush(stdout);
  while (fgets(line, sizeof(line), stdin) != NULL) {
    if (line[0] == 'q') return 7;
    if (line[0] == 'a') for (int i = 0; i < 20000; i++) blocks[n++] = memset(malloc(600), 1, 600);
    if (line[0] == 'k') *(volatile int*)1 = 1;
    // Time for a round that shows it: a program with one thread makes them itself.
    for (int i = 0; i < 30; i++) {
      void* some[50];
      for (int k = 0; k < 50; k++) some[k] = malloc(100000);
      for (int k = 0; k < 50; k++) free(some[k]);
      usleep(10000);
    }
    puts("done");
    fflush(stdout);
  }
  return 0;
}
"""


def compile_c(directory, name, source, *flags):
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    (directory / f"{name}.c").write_text(source)
    subprocess.run([compiler, "-g", "-O0", "-fno-builtin", "-o", directory / name, directory / f"{name}.c", *flags], check=True, timeout=WAIT)
    return directory / name


@pytest.fixture(scope="session")
def victim_program(tmp_path_factory):
    return compile_c(tmp_path_factory.mktemp("victim"), "victim", VICTIM)


class Victim:
    """A process that does what it is told."""

    def __init__(self, program, env):
        self.process = subprocess.Popen([program], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = int(self.process.stdout.readline())

    def tell(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(timeout=WAIT)
        self.process.stdin.close()
        self.process.stdout.close()


@pytest.fixture
def start_victim(victim_program, served):
    victims = []

    def start(**settings):
        victims.append(Victim(victim_program, {**served, "MIMALLOC_PUBLISH": "1", **settings}))
        return victims[-1]

    yield start
    for each in victims:
        each.end()


def wait_for(condition, seconds=WAIT):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)
