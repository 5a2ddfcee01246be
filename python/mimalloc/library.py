"""Finds the shared library, and preloads it."""

import ctypes.util
import os
import pathlib
import shutil
import struct
import subprocess

from .errors import ToolError

PACKAGE = pathlib.Path(__file__).resolve().parent
CHECKOUT = PACKAGE.parent.parent
OURS = "MIMALLOC_LIBRARY"    # which is no option of the library
NAMES = {"release": "libmimalloc.so", "secure": "libmimalloc-secure.so"}
BUILDS = {"release": ("build/user", "build/release"), "secure": ("build/secure",)}
SYSTEM = ("/usr/local/lib", "/usr/lib", "/usr/local/lib64", "/usr/lib64")


def is_checkout(path=CHECKOUT):
    return (path / "src" / "static.c").is_file() and (path / "CMakeLists.txt").is_file()


def _candidates(kind):
    name = NAMES[kind]
    yield PACKAGE / "lib" / name
    if is_checkout():
        yield from (CHECKOUT / build / name for build in BUILDS[kind])
    for place in SYSTEM:
        yield from sorted(pathlib.Path(place).glob(f"mimalloc*/{name}"))
        yield from (pathlib.Path(place) / name, *pathlib.Path(place).glob(f"*-linux-gnu/{name}"))
    found = ctypes.util.find_library(name.removeprefix("lib").removesuffix(".so"))
    if found:
        yield from sorted(path for place in SYSTEM for path in pathlib.Path(place).rglob(found))


def find(kind="release"):
    """The path of the library of that kind; $MIMALLOC_LIBRARY comes first."""
    chosen = os.environ.get(OURS)
    if chosen and kind == "release":
        if not pathlib.Path(chosen).is_file():
            raise ToolError(f"MIMALLOC_LIBRARY is {chosen}, and there is no such file.")
        return pathlib.Path(chosen).resolve()
    for path in _candidates(kind):
        if path.is_file():
            return path.resolve()
    raise ToolError(f"{NAMES[kind]} was not found. Install it (make install PREFIX=/usr/local), or say where it is: "
                    "MIMALLOC_LIBRARY=/path/to/libmimalloc.so.")


def _as_loader_finds(library, search):
    """(name for LD_PRELOAD, LD_LIBRARY_PATH).  A name in LD_PRELOAD ends at a space; that of a directory to search does not."""
    path = pathlib.Path(library)
    if " " not in str(path.parent) or any(sign in str(path.parent) for sign in ":;") or " " in path.name:
        return str(path), search
    return path.name, ":".join([str(path.parent), *([search] if search else [])])


def preload(environment, library):
    """The environment with the library preloaded, before whatever is preloaded already."""
    name, search = _as_loader_finds(library, environment.get("LD_LIBRARY_PATH"))
    others = [part for part in environment.get("LD_PRELOAD", "").replace(":", " ").split()
              if pathlib.Path(part).name not in NAMES.values()]
    rest = {key: value for key, value in environment.items() if key != OURS}
    return {**rest, **({"LD_LIBRARY_PATH": search} if search is not None else {}), "LD_PRELOAD": ":".join([name, *others])}


# ---- is it ours? ----------------------------------------------------------------------------------------------------

PROBE = "MIMALLOC_VERBOSE"


def _run_true(library, environment):
    """What /bin/true with the library preloaded ends with and says."""
    return subprocess.run(["/bin/true"], env=preload(environment, library), capture_output=True,
                          encoding="utf-8", errors="replace", timeout=30, check=False)


def probe(library, environment=None):
    """(does the library load and serve, what the loader or the library said)."""
    try:
        run = _run_true(library, {**(os.environ if environment is None else environment), PROBE: "1"})
    except (OSError, subprocess.TimeoutExpired) as error:
        return False, str(error)
    said = run.stderr.strip()
    return run.returncode == 0 and "process init" in said, said


WARNING = "mimalloc: warning: "


def warnings(library, environment):
    """The lines in which the library warns when a program starts in this environment."""
    try:
        said = _run_true(library, environment).stderr
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [line.removeprefix(WARNING) for line in said.splitlines() if line.startswith(WARNING)]


def check_loads(library):
    """The loader would only warn, and the program would run without the library."""
    _, said = probe(library)
    ours = [f"'{part}'" for part in str(library).replace(":", " ").split()]     # as the loader takes it apart
    refused = next((line for line in said.splitlines() if "cannot be preloaded" in line and any(part in line for part in ours)), None)
    if refused:
        raise ToolError(f"{library} cannot be preloaded: {refused}")


# ---- programs, and those that cannot have it preloaded ---------------------------------------------------------------

NOT_FOUND, NOT_EXECUTABLE = 127, 126     # exit statuses, as shells have them


def not_executable(program, error):
    return ToolError(f"{program} cannot be executed: {error.strerror}.", NOT_EXECUTABLE)


def find_program(name):
    """The path of a program into which the library can be preloaded."""
    path = shutil.which(name)
    if path is None and name and pathlib.Path(name).exists():
        raise ToolError(f"{name} cannot be executed.", NOT_EXECUTABLE)
    if path is None:
        raise ToolError(f"{name or 'A program without a name'} was not found.", NOT_FOUND)
    problem = obstacle(path)
    if problem:
        raise ToolError(problem)
    return path


ELF_HEADER = {1: (struct.Struct("<16sHHIIIIIHHHHHH"), struct.Struct("<IIIIIIII")),
              2: (struct.Struct("<16sHHIQQQIHHHHHH"), struct.Struct("<IIQQQQQQ"))}
PT_INTERP = 3


def _has_capabilities(path):
    try:
        return bool(os.getxattr(path, "security.capability"))
    except (AttributeError, OSError):   # there are none elsewhere, nor on every file system
        return False


def obstacle(program):
    """Why a program cannot have the library preloaded, as a sentence; None: nothing is known against it."""
    path = pathlib.Path(program)
    try:
        info = path.stat()
        with path.open("rb") as file:
            head = file.read(4096)
    except OSError:
        return None
    if info.st_mode & 0o6000 and os.getuid() != 0:
        return f"{path} runs with the rights of another user, and the system preloads nothing into such programs."
    if os.getuid() != 0 and _has_capabilities(path):
        return f"{path} has capabilities of its own, and the system preloads nothing into such programs."
    if head[:4] != b"\x7fELF" or head[4] not in ELF_HEADER or head[5] != 1:
        return None
    header, segment = ELF_HEADER[head[4]]
    fields = header.unpack_from(head)
    table, size, count = fields[5], fields[9], fields[10]
    try:
        kinds = {segment.unpack_from(head, table + i * size)[0] for i in range(count)}
    except struct.error:
        return None
    if head[4] * 32 != struct.calcsize("P") * 8:
        return f"{path} is a program of {head[4] * 32} bits, and the library has {struct.calcsize('P') * 8}."
    if PT_INTERP not in kinds:
        return f"{path} is linked statically, so nothing can be preloaded into it: link it with libmimalloc.a."
    return None
