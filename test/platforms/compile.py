#!/usr/bin/env python3
"""Compiles and links the library for systems that no machine of the tests runs, and looks into what comes out.

  test/platforms/compile.py macos|freebsd|netbsd|openbsd|windows-32|msvc|stubs ...

The first four use zig, which has headers and lists of symbols of these systems; it is installed into build/venv if it is not
there.  `windows-32` is for Windows with 32 bits, with MinGW's gcc; it builds all tests too.  `stubs` and `msvc` need clang-19
only: they check the sources against declarations of our own (test/stubs), for systems without a toolchain here, and for the
ABI of Microsoft's compilers.  Nothing is run.  Prints a line for each check, and writes build/<system>/Testing/results-<system>.xml.  The exit status is 1 if a
check failed."""

import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "test"))
from outcome import FAILED, RAN, write_results  # noqa: E402

FLAGS = ["-std=gnu11", "-O1", "-g0", "-DNDEBUG", "-DMI_BUILD_RELEASE", "-DMI_MALLOC_OVERRIDE", "-Wall", "-Wextra", "-Werror",
         "-fno-builtin-malloc", "-fexceptions", "-fvisibility=hidden", "-fPIC", "-ftls-model=initial-exec", f"-I{ROOT}/include"]
SHARED = ["-DMI_SHARED_LIB", "-DMI_SHARED_LIB_EXPORT"]
CXX = ["-x", "c++", "-std=gnu++17", "-Wno-missing-field-initializers", "-Wno-unused-command-line-argument"]

CLIENT = """#include <mimalloc.h>
#include <stdlib.h>
int main(void) {
  void *p = malloc(10), *q = mi_malloc(10);
  int has_both = (p != NULL && q != NULL);
  free(p);
  mi_free(q);
  return !has_both;
}
"""

STANDARD = ["malloc", "calloc", "realloc", "free", "posix_memalign", "aligned_alloc", "reallocarray", "strdup", "strndup",
            "_Znwm", "_Znam", "_ZdlPv", "_ZdaPv", "_ZdlPvm", "_ZnwmSt11align_val_t", "_ZdlPvSt11align_val_t"]
ELF = {  # names that a program of the system may call, and whose blocks it gives to free;
    "freebsd": STANDARD + ["reallocf", "valloc", "memalign", "malloc_usable_size", "mallocx", "rallocx", "xallocx", "sallocx",
                           "dallocx", "sdallocx", "nallocx"],
    "netbsd": STANDARD + ["reallocarr", "valloc", "memalign"],
    "openbsd": STANDARD + ["valloc", "memalign", "malloc_conceal", "calloc_conceal", "freezero", "recallocarray"],
}
PAIRS = [("mi_malloc", "malloc"), ("mi_calloc", "calloc"), ("darwin_realloc", "realloc"), ("darwin_reallocf", "reallocf"),
         ("darwin_free", "free"), ("mi_valloc", "valloc"), ("mi_aligned_alloc", "aligned_alloc"),
         ("mi_posix_memalign", "posix_memalign"), ("darwin_size", "malloc_size"), ("mi_good_size", "malloc_good_size")]
ZONE = ["malloc_zone_register", "malloc_zone_unregister", "malloc_zone_from_ptr", "malloc_zone_free", "malloc_get_all_zones"]
MSVC = {  # processor: what C puts before a name
    "x86_64": "",
    "i686": "_",
    "aarch64": "",
}
MSVC_FLAGS = ["-nostdinc", *[flag for flag in FLAGS if flag not in ("-fPIC", "-ftls-model=initial-exec", "-fvisibility=hidden")]]
MSVC_KINDS = {"shared": SHARED, "static": [], "events": [*SHARED, "-DMI_TRACK_ETW=1", "-DMI_PADDING=1"], "debug": ["-DMI_DEBUG=3"],
              "secure": ["-DMI_SECURE=5", "-DMI_SECURE_FULL=1"]}
STUBS = {  # system: the compiler's target, further flags
    "android": ("aarch64-linux-android24", []),
    "dragonfly": ("x86_64-unknown-dragonfly", []),
    "haiku": ("x86_64-unknown-haiku", []),
    "ios": ("arm64-apple-ios15.0", []),
}


class Wrong(Exception):
    pass


def expect(holds, text):
    if not holds:
        raise Wrong(text)


def run(*command):
    """What the command prints; its failure is ours."""
    done = subprocess.run([str(word) for word in command], cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    expect(done.returncode == 0, f"{' '.join(str(word) for word in command)}\n{(done.stdout + done.stderr)[-4000:]}")
    return done.stdout


def zig():
    """The command zig; installed if need be."""
    for python in (pathlib.Path(sys.executable), ROOT / "build/venv/bin/python"):
        if python.exists() and subprocess.run([python, "-m", "ziglang", "version"], capture_output=True, check=False).returncode == 0:
            return [python, "-m", "ziglang"]
    run(sys.executable, "-m", "venv", ROOT / "build/venv")
    run(ROOT / "build/venv/bin/pip", "install", "--quiet", "ziglang")
    return [ROOT / "build/venv/bin/python", "-m", "ziglang"]


def tool(name):
    found = shutil.which(f"{name}-19") or shutil.which(name)
    expect(found, f"{name}-19 is missing: it is in the Debian package llvm-19")
    return found


class System:
    """The checks of a system, one after the other; each name of a check stands for what was seen."""

    def __init__(self, name):
        self.name = name
        self.out = ROOT / "build" / name
        self.results = []
        (self.out / "Testing").mkdir(parents=True, exist_ok=True)

    def check(self, name, fun, *args):
        start = time.monotonic()
        try:
            fun(*args)
            said = ""
        except (Wrong, subprocess.TimeoutExpired) as wrong:
            said = str(wrong)
        seconds = time.monotonic() - start
        self.results.append((name, said, seconds))
        print(f"{'FAILED' if said else 'passed'}  {self.name}: {name}  ({seconds:.0f} s)", flush=True)
        if said:
            print(said)
        return not said

    def write(self):
        write_results(self.out / "Testing" / f"results-{self.name}.xml", self.name,
                      [(f"{self.name}-{name}", FAILED if said else RAN, said, seconds) for name, said, seconds in self.results])
        return all(not said for _, said, _ in self.results)


# ---- looking into files ---------------------------------------------------------------------------------------------


def exported(file, *options):
    return {line.split()[-1] for line in run(tool("llvm-nm"), "--defined-only", "--extern-only", *options, file).splitlines() if line.split()}


def undefined(file, *options):
    return {line.split()[-1] for line in run(tool("llvm-nm"), "--undefined-only", *options, file).splitlines() if line.split()}


def has_all(names, wanted, where):
    lacking = sorted(set(wanted) - names)
    expect(not lacking, f"{where} lacks {' '.join(lacking)}")


def interposed(file):
    """The pairs of the table in an object file, by its relocations: every second entry is the function that is replaced."""
    pairs, inside = {}, False
    for line in run(tool("llvm-objdump"), "-r", "--section=__interpose", file).splitlines():
        inside = inside or "__interpose" in line
        match = re.match(r"([0-9a-f]{16})\s+\S+\s+(\S+)$", line)
        if inside and match:
            pairs[int(match[1], 16)] = match[2].removeprefix("_")
    return [(pairs.get(at), pairs.get(at + 8)) for at in sorted(pairs) if at % 16 == 0]


def check_table(file):
    found = interposed(file)
    expect(found == PAIRS, f"the table has {found}, not {PAIRS}")


def check_bound(file):
    """In the library the loader finds each function that is replaced at its place in the table."""
    bound = re.findall(r"__interpose\s+0x([0-9A-Fa-f]+)\s.*\s_(\w+)$", run(tool("llvm-objdump"), "--macho", "--bind", file), re.M)
    places = sorted((int(at, 16), name) for at, name in bound)
    expect([name for _, name in places] == [theirs for _, theirs in PAIRS], f"bound in __interpose: {places}")
    expect(all((at - places[0][0]) == 16 * i for i, (at, _) in enumerate(places)), f"places in __interpose: {places}")


def check_macho(file):
    names, wanted = exported(file), undefined(file)
    has_all(names, ["_mi_malloc", "_mi_free", "_mi_heap_new", "_mi_stats_print"], "the library")
    expect("_malloc" not in names, "the library defines malloc: only the table may stand in for it")
    has_all(wanted, ["_malloc", "_free"] + [f"_{name}" for name in ZONE], "what the library asks the system for")
    thread = sorted(name for name in wanted if "tlv" in name or "emutls" in name)
    expect(not thread, f"thread-local variables of the compiler: {thread}")
    sections = run(tool("llvm-objdump"), "-h", file)
    expect("__thread" not in sections, "there are sections of thread-local variables")
    expect("__mi_local" in sections, "the section __mi_local is missing")


def check_elf(name, file):
    names, wanted = exported(file, "-D"), {symbol.split("@")[0] for symbol in undefined(file, "-D")}
    has_all(names, ELF[name] + ["mi_malloc", "mi_free", "mi_heap_new"], "the library")
    inside = sorted(name for name in names if name.startswith("_mi_"))
    expect(not inside, f"internal names are visible: {inside}")
    thread = sorted(symbol for symbol in wanted if "tls_get_addr" in symbol or "emutls" in symbol)
    expect(not thread, f"calls for thread-local variables, which may allocate: {thread}")
    has_tls = "TLS" in run(tool("llvm-readelf"), "-lW", file)
    expect(has_tls == (name != "openbsd"), f"a segment of thread-local variables: {has_tls}")


# ---- systems ----------------------------------------------------------------------------------------------------------


def compile_for(system, target, shared):
    out, cc = system.out, [*zig(), "cc", "-target", target, "-fno-sanitize=undefined"]
    tag = target.split("-", maxsplit=1)[0]
    if not system.check(f"{tag}-compiles", run, *cc, *FLAGS, *SHARED, "-c", "src/static.c", "-o", out / f"{tag}-shared.o"):
        return None
    system.check(f"{tag}-compiles-static", run, *cc, *FLAGS, "-c", "src/static.c", "-o", out / f"{tag}-static.o")
    system.check(f"{tag}-compiles-cxx", run, *zig(), "c++", "-target", target, *[f for f in FLAGS if f != "-std=gnu11"],
                 *CXX, "-c", "src/static.c", "-o", out / f"{tag}-cxx.o")
    (out / "client.c").write_text(CLIENT, encoding="utf-8")
    library = out / f"{tag}-{shared[-1]}"
    if not system.check(f"{tag}-links", run, *cc, *shared[:-1], "-o", library, out / f"{tag}-shared.o", "-lpthread"):
        return None
    client = [*cc, f"-I{ROOT}/include", out / "client.c", "-lpthread", "-o", out / f"{tag}-client"]
    system.check(f"{tag}-client-links", run, *client, library)
    system.check(f"{tag}-client-static-links", run, *client, out / f"{tag}-static.o")
    return library


def macos(system):
    for target in ("aarch64-macos", "x86_64-macos"):
        library = compile_for(system, target, ["-dynamiclib", "libmimalloc.dylib"])
        if library is None:
            continue
        tag = target.split("-", maxsplit=1)[0]
        system.check(f"{tag}-table", check_table, system.out / f"{tag}-shared.o")
        system.check(f"{tag}-table-bound", check_bound, library)
        system.check(f"{tag}-symbols", check_macho, library)


def bsd(system):
    library = compile_for(system, f"x86_64-{system.name}",
                          ["-shared", "-Wl,-z,defs", "libmimalloc.so"])
    if library is not None:
        system.check("x86_64-symbols", check_elf, system.name, library)


def header(file, field):
    """The names that llvm-readobj gives in a list of an image: of its libraries, or of what it exports."""
    options = {"imports": "--coff-imports", "exports": "--coff-exports"}
    return re.findall(r"^  Name: (\S+)$", run(tool("llvm-readobj"), options[field], file), re.M)


def check_dll(file):
    """The names are those that programs call, without what a convention of calls puts around them."""
    names, libraries = set(header(file, "exports")), {name.lower() for name in header(file, "imports")}
    has_all(names, ["mi_malloc", "mi_free", "mi_heap_new", "mi_stats_print", "mi_is_redirected"], "the library")
    inside = sorted(name for name in names if name.startswith("_") or "@" in name)
    expect(not inside, f"names that are not the interface's are exported: {inside}")
    expect(libraries <= {"kernel32.dll", "msvcrt.dll", "advapi32.dll"}, f"DLLs that it needs: {sorted(libraries)}")
    thread = sorted(name for name in undefined(file) if "emutls" in name)
    expect(not thread, f"calls for thread-local variables, which may allocate: {thread}")
    tls = re.search(r"TLSTableRVA: 0x([0-9A-F]+)", run(tool("llvm-readobj"), "--file-headers", file))
    expect(tls and int(tls[1], 16) != 0, "it has no table of callbacks at the end of threads")


def windows_32(system):
    build = system.out / "build"
    if system.check("configures", run, "cmake", "-S", ROOT, "-B", build, "-DMI_DEV_WARNINGS=ON",
                    f"-DCMAKE_TOOLCHAIN_FILE={ROOT}/cmake/toolchains/windows-32.cmake"):
        for target in ("mimalloc", "mimalloc-static", "mimalloc-obj", "mimalloc-test", "all"):
            system.check("tests-link" if target == "all" else f"{target}-compiles", run, "cmake", "--build", build, "--target", target, "-j2")
        system.check("symbols", check_dll, build / "mimalloc.dll")


def check_msvc(file, prefix, is_shared):
    """What the object asks for is there in each Windows; and it asks the linker for what it needs."""
    wanted = {name.removeprefix(prefix) for name in undefined(file)}
    lacking = sorted(name for name in wanted if "emutls" in name or name in ("__tls_guard", "__dyn_tls_on_demand_init"))
    expect(not lacking, f"calls for thread-local variables: {lacking}")
    expect(not any(name.startswith("mi_") or name.startswith("_mi_") for name in wanted), "it lacks functions of its own")
    said = run(tool("llvm-readobj"), "--coff-directives", "--sections", file)
    for name in ("_tls_used", "_mi_prim_tls_event"):
        expect(f"/include:{prefix}{name}" in said, f"the linker is not asked to keep {name}")
    expect("Name: .CRT$XLY" in said, "there is no entry in the table of callbacks")
    has_all(exported(file), [f"{prefix}_mi_prim_tls_event", f"{prefix}mi_malloc"], "the object")
    expect((f"/EXPORT:{prefix}mi_malloc " in said) == is_shared, "the names of the interface are exported by DLLs only")


def msvc(system):
    builtin = pathlib.Path(run("clang-19", "-print-resource-dir").strip()) / "include"
    for processor, prefix in MSVC.items():
        for kind, more in MSVC_KINDS.items():
            file = system.out / f"{processor}-{kind}.obj"
            command = ["clang-19", f"--target={processor}-pc-windows-msvc", *MSVC_FLAGS, *more, "-isystem", ROOT / "test/stubs/windows",
                       "-isystem", builtin, "-c", "src/static.c", "-o", file]
            if system.check(f"{processor}-{kind}-compiles", run, *command):
                system.check(f"{processor}-{kind}-symbols", check_msvc, file, prefix, more[:2] == SHARED)


def stubs(system):
    builtin = pathlib.Path(run("clang-19", "-print-resource-dir").strip()) / "include"
    for name, (target, flags) in STUBS.items():
        command = ["clang-19", f"--target={target}", "-fsyntax-only", "-nostdinc", *FLAGS, *flags,
                   "-isystem", ROOT / "test/stubs" / name, "-isystem", ROOT / "test/stubs/posix", "-isystem", builtin]
        for kind, more in (("library", SHARED), ("static", [])):
            system.check(f"{name}-{kind}", run, *command, *more, "src/static.c")


def main():
    names = sys.argv[1:]
    known = {"macos": macos, "freebsd": bsd, "netbsd": bsd, "openbsd": bsd, "windows-32": windows_32, "msvc": msvc,
             "stubs": stubs}
    if not names or any(name not in known for name in names):
        print(__doc__, file=sys.stderr)
        return 2
    good = True
    for name in names:
        system = System(name)
        known[name](system)
        good = system.write() and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
