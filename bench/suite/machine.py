"""Where it is measured, and with which versions. What cannot be found out is left out."""

import datetime
import os
import pathlib
import platform
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LIBRARY = ("src", "include", "cmake", "CMakeLists.txt", "CMakePresets.json")  # what the library is made from
CHANGED = " with changes"  # follows a commit where these differ from it


def read(path):
    try:
        return pathlib.Path(path).read_text(errors="replace")
    except OSError:
        return ""


def first(pattern, text):
    match = re.search(pattern, text, re.MULTILINE)
    return match[1].strip() if match else ""


def cores():
    return len(os.sched_getaffinity(0))


def describe(library=""):
    """Word to text, for the head of a report. `library` is one that the compiler of the project made."""
    memory = first(r"^MemTotal:\s+([0-9]+) kB", read("/proc/meminfo"))
    facts = {
        "CPU": first(r"^model name\s*:(.*)$", read("/proc/cpuinfo")) or platform.machine(),
        "cores": str(cores()),
        "memory": f"{int(memory) / 2**20:.1f} GiB" if memory else "",
        "kernel": f"{platform.system()} {platform.release().split('-')[0]}",
        "libc": " ".join(platform.libc_ver()),
        "compiler": compiler_of(library) if library else "",
        "huge pages": first(r"\[(\w+)\]", read("/sys/kernel/mm/transparent_hugepage/enabled")),
        "load at the start": load(),
    }
    return {word: text for word, text in facts.items() if text}


def load():
    return " ".join(read("/proc/loadavg").split()[:1])


def compiler_of(library):
    """Compilers leave their name in what they make."""
    try:
        match = re.search(rb"GCC: \([^)\0]*\) [0-9][0-9.]*|[A-Za-z ]*clang version [0-9][0-9.]*",
                          pathlib.Path(library).read_bytes())
    except OSError:
        return ""
    return match[0].decode().strip() if match else ""


def now():
    return datetime.datetime.now().astimezone().isoformat(sep=" ", timespec="minutes")


# ---- versions of allocators

def own_version():
    number = first(r"^#define MI_MALLOC_VERSION ([0-9]+)", read(ROOT / "include/mimalloc.h"))
    return f"{int(number) // 10000}.{int(number) // 100 % 100}.{int(number) % 100}" if number else ""


def libc_version():
    return platform.libc_ver()[1]


def peer_versions(directory):
    """From versions.txt in the directory of the peers: lines `NAME VERSION`."""
    lines = (line.split(maxsplit=1) for line in read(pathlib.Path(directory, "versions.txt")).splitlines())
    return {words[0]: words[1].strip() for words in lines if len(words) == 2}


# ---- commits

def git(*arguments):
    """What git says, or None."""
    try:
        done = subprocess.run(["git", "-C", str(ROOT), *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def tree_commit():
    """The commit that this tree has, and its date; "" where that cannot be found out."""
    commit, date = git("rev-parse", "HEAD"), git("show", "--no-patch", "--format=%cs", "HEAD")
    changes = git("status", "--porcelain", "--", *LIBRARY)
    if not commit or changes is None:
        return "", ""
    return commit + (CHANGED if changes else ""), date or ""


def commits_since(commit):
    """How many commits changed the library since then; None where git does not know."""
    count = git("rev-list", "--count", f"{commit}..HEAD", "--", *LIBRARY)
    return int(count) if count is not None else None


def is_same_library(commit, other):
    """As far as git knows."""
    return commit == other or git("diff", "--quiet", commit, other, "--", *LIBRARY) is not None
