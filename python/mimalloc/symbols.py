"""Names of functions for the addresses of a profile: by llvm-symbolizer or addr2line, and otherwise from the symbol tables."""

import bisect
import functools
import os
import pathlib
import shutil
import subprocess

from . import output
from .pprof import Line

LLVM = ("llvm-symbolizer", *(f"llvm-symbolizer-{n}" for n in range(25, 12, -1)))
TIMEOUT = 300
DEBUG_ROOT = pathlib.Path("/usr/lib/debug/.build-id")


def _elf(path):
    try:
        from elftools.common.exceptions import ELFError
        from elftools.elf.elffile import ELFFile
    except ImportError:
        return None, None
    try:
        file = open(path, "rb")
        return file, ELFFile(file)
    except (OSError, ValueError, ELFError):     # ValueError: a place that no file has
        return None, None


def _if_whole(otherwise):
    """What reads a file that is damaged or cut off gives `otherwise`; pyelftools notices that in many ways."""
    def wrap(function):
        @functools.wraps(function)
        def guarded(*args):
            try:
                return function(*args)
            except Exception:   # ELFError, ValueError, struct.error, AttributeError, ...
                return otherwise
        return guarded
    return wrap


@_if_whole("")
def build_id(path):
    """In hexadecimal digits; empty: it has none, or pyelftools is missing."""
    file, elf = _elf(path)
    if elf is None:
        return ""
    with file:
        section = elf.get_section_by_name(".note.gnu.build-id")
        if section is None:
            return ""
        notes = [note["n_desc"] for note in section.iter_notes() if note["n_type"] == "NT_GNU_BUILD_ID"]
        return notes[0] if notes else ""


class Module:
    """One mapped file of a profile."""

    def __init__(self, mapping):
        self.mapping = mapping
        self.path = self._find(mapping)
        self.segments = self._segments()

    @staticmethod
    def _find(mapping):
        """The file; None if it is not there, or is another one by now."""
        if not os.path.isfile(mapping.filename):
            return None
        want = mapping.build_id.lower()
        if want:
            separate = DEBUG_ROOT / want[:2] / f"{want[2:]}.debug"
            if separate.is_file():
                return str(separate)
            have = build_id(mapping.filename)
            if have and have != want:
                return None
        return mapping.filename

    @_if_whole([])
    def _segments(self):
        """(offset, size in the file, address) of what is loaded."""
        file, elf = _elf(self.mapping.filename) if self.path else (None, None)
        if elf is None:
            return []
        with file:
            return [(s["p_offset"], s["p_filesz"], s["p_vaddr"]) for s in elf.iter_segments() if s["p_type"] == "PT_LOAD"]

    def address(self, address):
        """As the file has it, from one of the process."""
        offset = address - self.mapping.start + self.mapping.offset
        for start, size, at in self.segments:
            if start <= offset < start + size:
                return offset - start + at
        return offset


def _parse(text, n):
    """Of addr2line and llvm-symbolizer alike: per address pairs of lines, function and place, behind one with the address."""
    groups = []
    for line in text.splitlines():
        if line.startswith("0x") and " " not in line:
            groups.append([])
        elif groups and line:
            groups[-1].append(line)
    if len(groups) != n:
        return None
    return [[_line(group[i], group[i + 1]) for i in range(0, len(group) - 1, 2)] for group in groups]


def _line(function, place):
    file, _, rest = place.partition(":")
    number = rest.split(":")[0].split(" ")[0]
    function = function.split("@GLIBC")[0]  # the version of a symbol
    return Line("" if function == "??" else function, "" if file == "??" else file, int(number) if number.isdigit() else 0)


def _commands(path):
    for name in LLVM:
        if shutil.which(name):
            yield [name, f"--obj={path}", "--addresses", "--functions=linkage", "--demangle", "--inlines", "--output-style=GNU"]
            break
    if shutil.which("addr2line"):
        yield ["addr2line", "-e", path, "-a", "-f", "-C", "-i"]


def _by_tool(path, addresses):
    asked = "".join(f"0x{address:x}\n" for address in addresses)
    for command in _commands(path):
        try:
            run = subprocess.run(command, input=asked, capture_output=True, encoding="utf-8", errors="replace", timeout=TIMEOUT, check=False)
        except (OSError, subprocess.TimeoutExpired):
            continue
        found = _parse(run.stdout, len(addresses))
        if found is not None:
            return found
    return [[] for _ in addresses]


class SymbolTable:
    """The functions in .symtab and .dynsym, by address."""

    def __init__(self, path):
        self.found = self._functions(path)
        self.starts = sorted(self.found)

    @staticmethod
    @_if_whole({})
    def _functions(path):
        found = {}
        file, elf = _elf(path)
        if elf is not None:
            with file:
                for name in (".dynsym", ".symtab"):
                    section = elf.get_section_by_name(name)
                    for symbol in section.iter_symbols() if section is not None and hasattr(section, "iter_symbols") else ():
                        if symbol["st_info"]["type"] in ("STT_FUNC", "STT_LOOS") and symbol["st_value"]:
                            found[symbol["st_value"]] = (symbol["st_size"], symbol.name)
        return found

    def name(self, address):
        i = bisect.bisect_right(self.starts, address) - 1
        if i < 0:
            return ""
        size, name = self.found[self.starts[i]]
        name = name.split("@GLIBC")[0]
        return name if size == 0 or address < self.starts[i] + size else ""


def _symbolise_module(mapping, locations):
    module = Module(mapping)
    if module.path is None:
        return
    addresses = [module.address(loc.address) for loc in locations]  # within the call, as the format demands
    table = None
    for loc, address, lines in zip(locations, addresses, _by_tool(module.path, addresses)):
        lines = [line for line in lines if line.function]
        if not lines:
            table = table or SymbolTable(module.path)
            name = table.name(address)
            lines = [Line(name)] if name else []
        loc.lines = lines


def symbolise(profile):
    """Fills in the lines of those locations that have none."""
    by_mapping = {}
    for loc in profile.locations:
        if not loc.lines and loc.mapping is not None and loc.mapping.filename:
            by_mapping.setdefault(loc.mapping.id, (loc.mapping, []))[1].append(loc)
    for mapping, locations in by_mapping.values():
        _symbolise_module(mapping, locations)
    return profile


def names(location):
    """Of a location, from the outermost function to the innermost that is inlined there."""
    if location.lines:
        return [output.printable(line.function) for line in reversed(location.lines)]
    if location.mapping is not None and location.mapping.filename:
        offset = location.address - location.mapping.start + location.mapping.offset
        return [f"{output.printable(os.path.basename(location.mapping.filename))}+0x{offset:x}"]
    return [f"0x{location.address:x}"]
