#!/usr/bin/env python3
"""Tests of minject.

  run.py made --minject FILE          files made here (images.py): each refusal, what is kept, what changes
  run.py hostile --hostile FILE       broken files; --seed, --count: how many of each
  run.py programs --minject FILE      programs made by MinGW, clang and lld; read by objdump, and by pefile if it is there
  run.py wine --minject FILE          programs that run under wine, before and after; --dll: with this mimalloc.dll, too

minject may be a program of Windows itself: then it runs under wine.  What is missing is skipped (exit status 77 if that is all)."""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import images
from images import Image, make

HERE = pathlib.Path(__file__).resolve().parent
SKIP = 77
MINGW = {64: "x86_64-w64-mingw32-gcc", 32: "i686-w64-mingw32-gcc"}
n_checks = 0


def check(what, *values):
    global n_checks
    n_checks += 1
    assert what, values


class Bench:
    """A directory with files, and minject."""

    def __init__(self, minject, where):
        self.minject = ["wine", minject] if minject and minject.endswith(".exe") else [minject]
        self.where = pathlib.Path(where)
        self.environment = {k: v for k, v in os.environ.items() if k != "DISPLAY"}
        self.environment.update(WINEDEBUG="-all", WINEPREFIX=os.environ.get("WINEPREFIX", str(self.where / "prefix")))

    def file(self, data, name="prog.exe"):
        (self.where / name).write_bytes(data)
        return name

    def read(self, name):
        return (self.where / name).read_bytes()

    def run(self, *arguments, status=0):
        said = ""
        # Not through a pipe: wine's server, which stays for a while, would keep it open.
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            done = subprocess.run([*self.minject, *arguments], cwd=self.where, stdout=output, stderr=errors, env=self.environment,
                                  stdin=subprocess.DEVNULL, timeout=300, check=False)
            for file in (output, errors):
                file.seek(0)
                said += file.read().decode().replace("\r\n", "\n")
        check(done.returncode == status, arguments, done.returncode, said)
        return said

    def refused(self, data, text, *arguments):
        before = self.clear()
        said = self.run(*arguments, self.file(data), status=1)
        check(text in said, text, said)
        check(sorted(p.name for p in self.where.iterdir()) == sorted([*before, "prog.exe"]), "it has left files")
        check(self.read("prog.exe") == data, "it has changed the file")

    def clear(self):
        for path in self.where.iterdir():
            path.unlink()
        return []

    def changed(self, data, *arguments):
        """The image that minject makes of these bytes."""
        self.clear()
        self.run("-o", "out.exe", *arguments, self.file(data))
        check(self.read("prog.exe") == data, "it has changed the original")
        return compare(data, self.read("out.exe"))


def compare(data, result, library="mimalloc.dll"):
    """Is `result` what minject should make of `data`?"""
    before, after = Image(data), Image(result).check()
    kept = [i for i in before.imports() if i[0].lower() != library]
    check([i[0].lower() for i in after.imports()] == [library] + [i[0].lower() for i in kept], after.imports())
    check(after.imports()[1:] == kept, "other imports have changed")
    check("mi_version" in after.imports()[0][1] or len(kept) < len(before.imports()), after.imports())
    check(after.checksum == after.sum(), "the checksum is wrong", hex(after.checksum), hex(after.sum()))
    check(after.sections[:-1] == before.sections or not before.directory("addresses")[0], "a section has changed")
    check(after.sections[-1][0] == b".minject" and len(after.sections) == len(before.sections) + 1, after.sections)
    for i, (_, _, _, raw, size, _) in enumerate(before.sections):
        check(before.directory("debug")[0] or result[raw:raw + size] == data[raw:raw + size], "contents have changed", i)
    check(after.directory("import")[0] == after.sections[-1][1] + 24 and after.directory("bound") == (0, 0), after.directories)
    check(after.directory("certificates") == (0, 0), after.directories)
    for _, _, addresses in after.imports():  # the loader has to be able to write there
        first, size = after.directory("addresses")
        check(first <= addresses < first + size or after.section_of(addresses)[5] & 0x80000000, "addresses are read-only")
    place, size = before.directory("certificates")
    overlay = data[before.end:place] if size else data[before.end:]
    check(result[after.end:] == overlay, "the overlay has changed", len(overlay), len(result) - after.end)
    check((after.symbols - after.end if after.symbols else 0) == (before.symbols - before.end if before.symbols else 0), "symbols")
    return after


# ---- made -------------------------------------------------------------------------------------------------------------------

def test_refusals(bench):
    bench.refused(b"", "does not begin with MZ")
    bench.refused(b"#!/bin/sh\n", "does not begin with MZ")
    bench.refused(b"MZ", "truncated")
    bench.refused(b"MZ" + bytes(100), "not a PE executable")
    bench.refused(b"MZ" + bytes(58) + b"\xff\xff\xff\x7f" + bytes(100), "no PE header")
    data = make()
    pe_at = Image(data).pe
    bench.refused(data[:pe_at + 24] + b"\x07\x01" + data[pe_at + 26:], "0x107")
    bench.refused(data[:700], "truncated")
    bench.refused(data[:-1], "section 1 ends at 0x800, the file at 0x7ff")
    bench.refused(make(cli=True), "a .NET program")
    bench.refused(make(cli=True), "a .NET program", "--force")
    bench.refused(make(dll=True), "a library (DLL)")
    bench.refused(make(subsystem=1), "subsystem 1")
    bench.refused(make(subsystem=10), "subsystem 10")
    bench.refused(make(alignment=0x200), "not aligned to OS pages")
    bench.refused(make(room=0), "no room")
    bench.refused(make(n_directories=1, imports={}), "no room for a table of imports")
    many = bytearray(make(n_directories=1, imports={}))
    many[Image(bytes(many)).optional + 108] = 16
    bench.refused(bytes(many), "too small for its directories")
    bench.refused(make(signed=b"certificate"), "it is signed")
    bench.refused(make(integrity=True), "FORCE_INTEGRITY")
    bench.refused(make(imports={"MiMalloc.DLL": ["mi_version"], "KERNEL32.dll": ["ExitProcess"]}), "its first import already")
    full = bytearray(make())  # something unknown is where the next header would be
    full[Image(bytes(full)).table_end + 39] = 1
    bench.refused(bytes(full), "no room")
    empty = bytearray(make(room=0))  # where the next header would be is zero, but a section
    empty[Image(bytes(empty)).sections[0][3]] = 0
    bench.refused(bytes(empty), "no room")
    inside = bytearray(make(signed=b"certificate"))  # the signature is said to be in a section
    place = inside.index(Image(bytes(inside)).directory("certificates")[0].to_bytes(4, "little"))
    inside[place:place + 4] = (0x400).to_bytes(4, "little")
    bench.refused(bytes(inside), "the signature is not behind the sections", "--force")
    broken = bytearray(make())  # the name of its first import
    table = Image(bytes(broken)).at(Image(bytes(broken)).directory("import")[0])
    broken[table + 12:table + 16] = b"\0\0\0\x7f"
    bench.refused(bytes(broken), "entry 0 has no name")
    huge = bytearray(make())  # the second section takes all addresses
    size_at = Image(bytes(huge)).table_end - 40 + 8
    huge[size_at:size_at + 4] = b"\0\xf0\xff\x7f"
    bench.refused(bytes(huge), "2 GiB")


def test_changes(bench):
    for bits in (32, 64):
        for symbols, overlay in ((b"", b""), (b"", b"o"), (b"s" * 36, b""), (b"s" * 18, b"PK\3\4" * 1001)):
            bench.changed(make(bits, symbols=symbols, overlay=overlay))
            bench.changed(make(bits, symbols=symbols, overlay=overlay, signed=b"c" * 77), "--force")
        bench.changed(make(bits, file_alignment=0x1000, overlay=b"xyz"))
        bench.changed(make(bits, alignment=0x10000))
        bench.changed(make(bits, room=1))
        bench.changed(make(bits, imports={}))
        bench.changed(make(bits, bound=True))
        bench.changed(make(bits, bound=True, room=1))
        bench.changed(make(bits, with_addresses=False))
        bench.changed(make(bits, delayed={"VERSION.dll": ["GetFileVersionInfoA"]}))
        check(not bench.changed(make(bits, integrity=True), "-f").dll_flags & 0x80, "FORCE_INTEGRITY has stayed")
        after = bench.changed(make(bits, debug=True, overlay=b"01234DEBUG"))
        place = int.from_bytes(after.data[after.at(after.directory("debug")[0]) + 24:][:4], "little")
        check(after.data[place:place + 5] == b"DEBUG", "the place of debug information is not that of its bytes")
        late = bench.changed(make(bits, imports={"KERNEL32.dll": ["ExitProcess"], "MIMALLOC.dll": ["mi_malloc", "mi_free"]}))
        check(late.imports()[0][:2] == ("MIMALLOC.dll", ["mi_malloc", "mi_free"]), "ours has lost its functions", late.imports())
    bench.changed(make(machine=images.ARM64))


def test_files(bench):
    """Names of files, --inplace and --undo."""
    data = make()
    bench.clear()
    bench.file(data)
    check("mimalloc.dll is not beside it" in bench.run("prog.exe"), "it does not say that the library is not there")
    compare(data, bench.read("prog-mi.exe"))
    check("--force" in bench.run("prog.exe", status=1), "an existing copy was replaced")
    bench.file(b"", "prog-mi.exe")
    bench.run("-f", "prog.exe")
    compare(data, bench.read("prog-mi.exe"))
    check("--inplace does that" in bench.run("-f", "-o", "prog.exe", "prog.exe", status=1), "the original was replaced")
    check("its first import already" in bench.run("prog-mi.exe", status=1), "it was changed twice")
    check("undo that first" in bench.run("--postfix=debug", "prog-mi.exe", status=1), "it was changed twice")
    bench.run("--inplace", "prog.exe")
    compare(data, bench.read("prog.exe"))
    check(bench.read("prog.exe.minject-backup") == data, "the backup is not the original")
    check("already" in bench.run("-i", "prog.exe", status=1), "it was changed twice")
    bench.run("--undo", "prog.exe")
    check(bench.read("prog.exe") == data and not (bench.where / "prog.exe.minject-backup").exists(), "undo")
    check("nothing to undo" in bench.run("--undo", "prog.exe", status=1), "undo without a backup")
    bench.run("-i", "prog.exe")
    update = make(overlay=b"a later version")
    bench.file(update)
    check("it has changed since" in bench.run("--undo", "prog.exe", status=1), "a later version was replaced")
    check("there is a backup already" in bench.run("-i", "prog.exe", status=1), "a backup was replaced")
    check(bench.read("prog.exe") == update and bench.read("prog.exe.minject-backup") == data, "a later version was replaced")
    bench.run("--undo", "--force", "prog.exe")
    check(bench.read("prog.exe") == data, "undo --force")
    bench.run("--postfix", "debug", "-f", "prog.exe")
    check(Image(bench.read("prog-mi.exe")).names()[0] == "mimalloc-debug.dll", "--postfix")
    (bench.where / "prog.exe").chmod(0o751)
    bench.run("-i", "prog.exe")
    check((bench.where / "prog.exe").stat().st_mode & 0o777 == 0o751, "permissions have changed")


def test_libraries(bench):
    """A library that is named, or lies beside, is checked."""
    bench.clear()
    bench.file(make())
    bench.file(make(32, dll=True), "mimalloc.dll")
    check("is for x86 (32-bit), the executable for x64 (64-bit)" in bench.run("prog.exe", status=1), "the library beside it")
    check("is for x86 (32-bit)" in bench.run("--dll", "./mimalloc.dll", "prog.exe", status=1), "the library that is named")
    bench.file(make(machine=images.ARM64, dll=True), "arm.dll")
    check("ARM64" in bench.run("--dll=arm.dll", "prog.exe", status=1), "another processor")
    bench.file(make(dll=True), "mimalloc.dll")
    check("is not mimalloc" in bench.run("prog.exe", status=1), "a library without the function")
    bench.file(make(), "mimalloc.dll")
    check("is not a library" in bench.run("prog.exe", status=1), "an executable")
    bench.file(b"text", "mimalloc.dll")
    check("MZ" in bench.run("prog.exe", status=1), "a text")
    check("cannot be read" in bench.run("--dll=none.dll", "prog.exe", status=1), "no library")
    check(not (bench.where / "prog-mi.exe").exists(), "a copy was made")


def test_list(bench):
    bench.clear()
    bench.file(make(32, delayed={"VERSION.dll": ["GetFileVersionInfoA"]}))
    said = bench.run("--list", "prog.exe")
    check(said == "prog.exe: PE32, x86 (32-bit)\n  KERNEL32.dll\n  USER32.dll\n  VERSION.dll (when first used)\n", said)
    said = bench.run("-lv", "prog.exe")
    check(re.findall(r"^    (.*)$", said, re.M) == ["ExitProcess", "GetLastError", "#7", "MessageBoxA", "GetFileVersionInfoA"], said)
    bench.file(make(dll=True, signed=b"x", cli=True))
    check(bench.run("-l", "prog.exe").startswith("prog.exe: PE32+ library, x64 (64-bit), signed, .NET\n"), "a library is listed")
    bench.file(make(imports={"\x1b[2J.dll": ["f"]}))
    check("  ?[2J.dll" in bench.run("-l", "prog.exe"), "names control the terminal")
    said = bench.run("-l", "prog.exe", "none.exe", status=1)
    check("none.exe: cannot be read" in said and "?[2J" in said, said)


def test_usage(bench):
    check("--undo" in bench.run("--help") and "--undo" in bench.run("-h"), "help")
    for arguments in ((), ("--what", "x"), ("-z", "x"), ("--list", "--undo", "x"), ("-o", "a", "x", "y"), ("-o", "a", "-i", "x"),
                      ("--postfix=", "x"), ("--postfix=../a", "x"), ("--dll=a", "--postfix=b", "x"), ("x", "-o")):
        check("--help" in bench.run(*arguments, status=2), arguments)
    bench.clear()
    bench.file(make(), "-odd.exe")
    bench.run("--", "-odd.exe")
    compare(make(), bench.read("-odd-mi.exe"))


# ---- hostile ------------------------------------------------------------------------------------------------------------------

def test_hostile(bench, program, seed, count):
    late = {"KERNEL32.dll": ["ExitProcess"], "mimalloc.dll": ["mi_version"]}
    names = [bench.file(data, f"{i}.exe") for i, data in enumerate((
        make(64, delayed={"VERSION.dll": ["GetFileVersionInfoA"]}, overlay=b"overlay", symbols=b"s" * 18, debug=True),
        make(32, bound=True, with_addresses=False, overlay=b"x"), make(64, signed=b"certificate", integrity=True),
        make(32, imports=late), make(64, imports={})))]
    done = subprocess.run([program, str(seed), str(count), *names], cwd=bench.where, capture_output=True, text=True, timeout=1000,
                          check=False)
    print(done.stdout + done.stderr, end="")
    check(done.returncode == 0, f"seed {seed}", done.returncode)


# ---- programs ---------------------------------------------------------------------------------------------------------------

def compile_programs(bench):
    """(name, bits) of the programs that the compilers here can make."""
    made = []

    def command(*arguments):
        return shutil.which(arguments[0]) and subprocess.run(arguments, cwd=bench.where, check=False).returncode == 0

    for bits, gcc in MINGW.items():
        for name, flags in (("plain", []), ("small", ["-Os", "-s"]), ("debug", ["-g"]), ("static", ["-static", "-s"]),
                            ("window", ["-mwindows"])):
            if command(gcc, *flags, str(HERE / "victim.c"), "-o", f"{name}{bits}.exe"):
                made.append((f"{name}{bits}.exe", bits))
        library = f"{bits}"
        os.makedirs(bench.where / library, exist_ok=True)
        command(gcc, "-shared", "-O", str(HERE / "library.c"), "-o", f"{library}/mimalloc.dll")
        if command(gcc, "-shared", "-O", '-DNAME="second"', str(HERE / "library.c"), "-o", f"{library}/other.dll"):
            command(gcc, str(HERE / "other.c"), f"{library}/other.dll", "-o", f"other{bits}.exe")
            made.append((f"other{bits}.exe", bits))
    kernel = "/usr/x86_64-w64-mingw32/lib/libkernel32.a"
    if os.path.exists(kernel) and shutil.which("lld-link-19") and command(
            "clang-19", "--target=x86_64-pc-windows-msvc", "-c", str(HERE / "freestanding.c"), "-o", "freestanding.obj"):
        if command("lld-link-19", "/entry:mainCRTStartup", "/subsystem:console", "/out:lld64.exe", "freestanding.obj", kernel):
            made.append(("lld64.exe", 64))
    return made


def objdump_imports(bench, name):
    """Of a copy it shows the first import only: it looks for names in the section of the table."""
    said = subprocess.run(["x86_64-w64-mingw32-objdump", "-p", name], cwd=bench.where, capture_output=True, text=True, check=True)
    check(said.stderr == "", said.stderr)
    return re.findall(r"^\s*DLL Name: (.*)$", said.stdout, re.M)


def check_by_readobj(bench, name):
    if not shutil.which("llvm-readobj-19"):
        return False
    said = subprocess.run(["llvm-readobj-19", "--coff-imports", name], cwd=bench.where, capture_output=True, text=True, check=True)
    check(said.stderr == "", said.stderr)
    found = re.findall(r"^  Name: (.*)$", said.stdout, re.M)
    check(found == Image(bench.read(name)).names(), "llvm-readobj: imports", found)
    return True


def objdump_symbols(bench, name):
    said = subprocess.run(["x86_64-w64-mingw32-objdump", "-t", name], cwd=bench.where, capture_output=True, text=True, check=True)
    return re.findall(r"^\[.*$", said.stdout, re.M)


def check_by_pefile(bench, name):
    try:
        import pefile
    except ImportError:
        return False
    image = pefile.PE(str(bench.where / name))
    bytes_only = "contents. This may indicate"  # of files that are mostly zero
    check([w for w in image.get_warnings() if bytes_only not in w] == [], image.get_warnings())
    check(image.verify_checksum(), "pefile: the checksum")
    first = image.DIRECTORY_ENTRY_IMPORT[0]
    check((first.dll, [i.name for i in first.imports]) == (b"mimalloc.dll", [b"mi_version"]), first)
    check([e.dll.decode() for e in image.DIRECTORY_ENTRY_IMPORT] == Image(bench.read(name)).names(), "pefile: the imports")
    return True


def inject_all(bench):
    programs = compile_programs(bench)
    for name, bits in programs:
        bench.run("-f", "--dll", f"{bits}/mimalloc.dll", name) if (bench.where / f"{bits}/mimalloc.dll").exists() else \
            bench.run("-f", name)
    return programs


def copy_of(name):
    return name.replace(".exe", "-mi.exe")


def test_programs(bench):
    programs = inject_all(bench)
    if not programs:
        return "no compiler for Windows (Debian: gcc-mingw-w64-x86-64, gcc-mingw-w64-i686)"
    by_pefile = by_readobj = 0
    for name, _ in programs:
        compare(bench.read(name), bench.read(copy_of(name)))
        check(objdump_imports(bench, copy_of(name))[:1] == ["mimalloc.dll"], "objdump: imports")
        check(len(objdump_symbols(bench, copy_of(name))) == len(objdump_symbols(bench, name)), "objdump: symbols")
        by_pefile += check_by_pefile(bench, copy_of(name))
        by_readobj += check_by_readobj(bench, copy_of(name))
    print(f"run.py: {len(programs)} programs; read by objdump, {by_readobj} by llvm-readobj, {by_pefile} by pefile (0: not there)")
    return ""


# ---- wine -------------------------------------------------------------------------------------------------------------------

def wine(bench, directory, name, *arguments, **environment):
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        status = subprocess.run(["wine", f"../{name}", *arguments], cwd=bench.where / directory, stdout=output, stderr=errors,
                                env={**bench.environment, **environment}, stdin=subprocess.DEVNULL, timeout=300, check=False).returncode
        output.seek(0)
        errors.seek(0)
        return status, output.read().decode().replace("\r\n", "\n").split("\n"), errors.read().decode(errors="replace")


def run_both(bench, name, library, expected):
    """The same output and status, before and after; `expected`: what the libraries say then."""
    before, after = (wine(bench, library, n, "a", "b c") for n in (name, copy_of(name)))
    # A program of another kind says nothing, and its status is 0.
    if before[1] == [""] and before[0] != 42:
        return False
    check(after[0] == before[0], "another exit status", name, before, after)
    own = [line for line in before[1] if line != "second"]
    check(after[1] == [*expected, *own], "another output", name, before, after)
    return True


def test_wine(bench, dll):
    if not shutil.which("wine"):
        return "no wine"
    programs = inject_all(bench)
    if not programs:
        return "no compiler for Windows"
    ran = []
    for name, bits in programs:
        directory = str(bits)
        expected = ["first", "second"] if name.startswith("other") else ["first"]
        if run_both(bench, name, directory, expected):
            ran.append(name)
    if not any("64" in name for name in ran):
        return "wine runs no programs here"
    print(f"run.py: {len(ran)} of {len(programs)} ran under wine: {' '.join(ran)}")
    if dll:  # the real one
        (bench.where / "real").mkdir()
        shutil.copy(dll, bench.where / "real/mimalloc.dll")
        for name in (n for n in ran if "64" in n and not n.startswith("other")):
            before, after = wine(bench, "real", name, "a"), wine(bench, "real", copy_of(name), "a", MIMALLOC_VERBOSE="1")
            check(before[:2] == after[:2], name, before, after)
            check("process init" in after[2] and "process init" not in before[2], "it is not loaded", name, after)
            print(f"run.py: {name} ran with {dll}")
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["made", "hostile", "programs", "wine"])
    parser.add_argument("--minject", type=os.path.abspath)
    parser.add_argument("--hostile", type=os.path.abspath, help="the program made from hostile.c")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=4000)
    parser.add_argument("--dll", type=os.path.abspath, help="a mimalloc.dll of 64 bits")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="minject-", ignore_cleanup_errors=True) as where:
        bench = Bench(args.minject, where)
        if args.what == "made":
            for test in (test_refusals, test_changes, test_files, test_libraries, test_list, test_usage):
                test(bench)
            missing = ""
        elif args.what == "hostile":
            missing = test_hostile(bench, args.hostile, args.seed, args.count) or ""
        else:
            missing = test_programs(bench) if args.what == "programs" else test_wine(bench, args.dll)
    if missing:
        print(f"skipped: minject-{args.what}: {missing}")
        return SKIP
    print(f"run.py: {n_checks} checks")
    return 0


if __name__ == "__main__":
    sys.exit(main())
