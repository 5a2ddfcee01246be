"""Where it is measured, and with which versions. What cannot be found out is left out."""

import datetime
import os
import pathlib
import platform
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


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
        "kernel": f"{platform.system()} {platform.release()}",
        "libc": " ".join(platform.libc_ver()),
        "compiler": compiler_of(library) if library else "",
        "huge pages": first(r"\[(\w+)\]", read("/sys/kernel/mm/transparent_hugepage/enabled")),
        "load at the start": " ".join(read("/proc/loadavg").split()[:1]),
    }
    return {word: text for word, text in facts.items() if text}


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
