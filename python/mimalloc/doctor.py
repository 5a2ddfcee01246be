"""Looks for what keeps the allocator from serving, and for settings of the system that matter to it."""

import os
import pathlib
import re
import resource

from . import library, options, output, page, proc
from .errors import ToolError

OK, NOTE, BAD = "ok", "note", "bad"
COLOURS = {OK: "green", NOTE: "yellow", BAD: "red"}
COLUMNS = [("", False), ("WHAT", False), ("IS", False), ("MEANS", False)]


def _read(path):
    try:
        return pathlib.Path(path).read_text(encoding="utf-8").strip()
    except OSError:
        return None


# ---- the library ----------------------------------------------------------------------------------------------------

def check_library():
    try:
        path = library.find()
    except ToolError as error:
        yield BAD, "library", "missing", str(error)
        return
    env = {name: value for name, value in os.environ.items() if not name.upper().startswith(options.PREFIX)}
    serves, said = library.probe(path, env)
    if serves:
        version = next((line for line in said.splitlines() if "v" in line), said).removeprefix("mimalloc: ")
        yield OK, "library", str(path), f"It loads and serves a program: {version}."
    else:
        yield BAD, "library", str(path), f"A program with it preloaded does not run with it. {said.splitlines()[0] if said else ''}".strip()


def check_preload():
    value = os.environ.get("LD_PRELOAD")
    if not value:
        yield NOTE, "LD_PRELOAD", "not set", "Programs started here use the malloc of the system. `mimalloc run` sets it."
        return
    ours = [part for part in value.replace(":", " ").split() if "mimalloc" in pathlib.Path(part).name]
    for part in ours:
        if "/" in part and not pathlib.Path(part).is_file():
            yield BAD, "LD_PRELOAD", part, "There is no such file: the loader warns, and programs run without it."
        else:
            yield OK, "LD_PRELOAD", part, "Programs started here use this library, unless they are static or setuid, or have capabilities."
    if not ours:
        yield NOTE, "LD_PRELOAD", value, "It has no mimalloc."


def check_variables(environment):
    for name, problem, near in options.check(environment):
        if near:
            yield BAD, name, problem, f"The nearest name is {near}."
        elif problem == "has no effect":
            yield NOTE, name, problem, "It exists for programs that were written for other versions."
        else:
            yield BAD, name, problem, "No option has a similar name."


ABOUT = re.compile(r"environment option mimalloc_(\w+) (?:has an invalid value\. )?(.*)")


def check_values(environment):
    """What the library itself says about them."""
    names = {name.lower(): name for name in environment}
    try:
        lib = library.find()
    except ToolError:
        return      # it was said before
    for line in dict.fromkeys(line for env in options.trials(environment) for line in library.warnings(lib, env)):
        about = ABOUT.fullmatch(line)
        name = about and names.get("mimalloc_" + about[1])
        if name:
            yield NOTE if "is deprecated" in line else BAD, name, environment[name], about[2]
        elif not line.endswith("is not known."):     # options.check has the nearest name
            yield BAD, "library", "warns", line


def check_process(pid):
    if page.started_of(pid) is None:
        raise ToolError(f"There is no process {pid}.")
    files = proc.mapped_files(pid)
    if files is None:
        yield BAD, f"process {pid}", "not readable", "This user may not look into it."
        return
    ours = [name for name in files if pathlib.Path(name).name.startswith("libmimalloc")]
    if ours:
        yield OK, f"process {pid}", ours[0], "The library is in the process."
    else:
        yield BAD, f"process {pid}", "no libmimalloc", "It was started without the library, is static, or contains the library itself."
    published = page.live_pages(pids=[pid])
    yield ((OK, f"process {pid}", str(published[0].path), f"It publishes: {output.size(published[0].stats['malloc_requested']['current'])} in use.")
           if published else (NOTE, f"process {pid}", "no page", "It does not publish its statistics."))
    environment = proc.environment(pid) or {}
    yield from check_variables(environment)
    yield from check_values(environment)


# ---- the system -----------------------------------------------------------------------------------------------------

THP = {
    "always": (NOTE, "Every program gets huge pages, and may take more memory for them. MIMALLOC_ALLOW_THP has less to decide."),
    "madvise": (OK, "The allocator asks for huge pages where pages are going to be filled (MIMALLOC_ALLOW_THP)."),
    "never": (NOTE, "There are no huge pages: programs with much memory miss some speed. MIMALLOC_ALLOW_THP has no effect."),
}
OVERCOMMIT = {
    "0": (OK, "The system refuses only obvious excess."),
    "1": (OK, "The system promises any amount; when memory runs out it ends processes."),
    "2": (NOTE, "The system promises no more than it has: malloc can return NULL, and forks of large processes can fail."),
}


def check_memory():
    text = _read("/sys/kernel/mm/transparent_hugepage/enabled")
    if text:
        value = text.partition("[")[2].partition("]")[0]
        yield (THP[value][0], "huge pages (THP)", value, THP[value][1]) if value in THP else (NOTE, "huge pages (THP)", text, "")
    text = _read("/proc/sys/vm/overcommit_memory")
    if text in OVERCOMMIT:
        yield OVERCOMMIT[text][0], "overcommit", text, OVERCOMMIT[text][1]
    text = _read("/proc/sys/vm/max_map_count")
    if text and text.isdigit():
        low = int(text) < 65530
        yield (NOTE if low else OK, "mappings", text, "Blocks over 32 MiB and guarded blocks take mappings of their own, up to this "
               "number" + ("; it is lower than usual." if low else "."))
    large = _read("/proc/sys/vm/nr_hugepages")
    if large and large != "0":
        yield OK, "reserved huge pages", large, "MIMALLOC_ALLOW_LARGE_OS_PAGES=1 uses them."


LIMITS = [
    ("RLIMIT_AS", resource.RLIMIT_AS, "Address space is limited: malloc returns NULL beyond it."),
    ("RLIMIT_DATA", resource.RLIMIT_DATA, "Private memory is limited: malloc returns NULL beyond it."),
    ("RLIMIT_FSIZE", resource.RLIMIT_FSIZE, "Files are limited: a published page needs 16 KiB, a profile more."),
]


def check_limits():
    for name, which, meaning in LIMITS:
        soft, _ = resource.getrlimit(which)
        if soft == resource.RLIM_INFINITY:
            yield OK, name, "unlimited", ""
        else:
            yield NOTE, name, output.size(soft), meaning


def cgroup_limits(proc_file="/proc/self/cgroup", root="/sys/fs/cgroup"):
    """(version, the lowest limit in bytes or None, the usage there or None), along the path of our group."""
    text = _read(proc_file)
    if text is None:
        return None, None, None
    lines = [line.split(":", 2) for line in text.splitlines() if line.count(":") >= 2]
    v1 = next((fields[2] for fields in lines if "memory" in fields[1].split(",")), None)
    v2 = next((fields[2] for fields in lines if fields[0] == "0" and fields[1] == ""), None)
    if v1 is not None:
        version, base, group, files = 1, pathlib.Path(root) / "memory", v1, ("memory.limit_in_bytes", "memory.usage_in_bytes")
    elif v2 is not None:
        version, base, group, files = 2, pathlib.Path(root), v2, ("memory.max", "memory.current")
    else:
        return None, None, None
    best = (None, None)
    parts = [part for part in group.split("/") if part and part != ".."]
    for depth in range(len(parts), -1, -1):
        place = base.joinpath(*parts[:depth])
        limit = _read(place / files[0])
        if not limit or not limit.isdigit() or int(limit) >= 1 << 60:
            continue
        usage = _read(place / files[1])
        if best[0] is None or int(limit) < best[0]:
            best = (int(limit), int(usage) if usage and usage.isdigit() else None)
    return version, *best


def check_container():
    version, limit, usage = cgroup_limits()
    if version is None:
        yield NOTE, "container (cgroup)", "unknown", "There are no control groups, or they are not mounted here."
    elif limit is None:
        yield OK, f"container (cgroup v{version})", "no limit", "Only the memory of the machine limits programs."
    else:
        used = f", {output.size(usage)} in use" if usage is not None else ""
        yield (NOTE, f"container (cgroup v{version})", output.size(limit) + used, "Beyond it the system ends a process of the "
               "group. `mimalloc run --limit` makes malloc return NULL before.")


def check_pages():
    for place in page.directories():
        if os.path.isdir(place):    # False where this user may not look
            usable = os.access(place, os.W_OK)
            yield (OK if usable else NOTE, "published pages", str(place), "Processes publish here." if usable else
                   "This user may not write there.")
            return
    yield BAD, "published pages", "no directory", "There is neither XDG_RUNTIME_DIR nor /dev/shm: set MIMALLOC_PUBLISH_DIR."


def doctor(pid, as_json):
    """The exit status: 1 if something is bad."""
    found = [*check_library(), *check_preload(), *check_variables(os.environ), *check_values(os.environ)]
    if pid is not None:
        found += check_process(pid)
    found += [*check_memory(), *check_limits(), *check_container(), *check_pages()]
    if as_json:
        output.print_json([dict(zip(("state", "what", "value", "meaning"), row)) for row in found])
    else:
        from rich.markup import escape
        output.print_table(COLUMNS, ([f"[{COLOURS[state]}]{state}[/{COLOURS[state]}]", *map(escape, rest)]
                                     for state, *rest in found))
    return 1 if any(row[0] == BAD for row in found) else 0
