#!/usr/bin/env python3
"""Runs parts of the tests, one build after the other, and says at the end what ran, what was skipped and why, and what is left.

  scripts/run-tests.py quick      what `make test` runs: the release build
  scripts/run-tests.py rest       everything else that continuous integration runs
  scripts/run-tests.py PART ...   single parts, by name or group
  scripts/run-tests.py --list     the parts and what they run, and the groups
  scripts/run-tests.py --record PART ...   notes the results in docs/platforms.md, too

Each part is one call of ctest in the build of one preset of CMakePresets.json, which is configured and built first.  Tools that
are missing are installed, or named (scripts/need.sh).  The exit status is 1 if a test failed, a build failed or a tool is
missing."""

import argparse
import dataclasses
import os
import pathlib
import subprocess
import sys
import time
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent

BUILD = ["cmake", "make", "gcc", "g++"]
CLANG = ["clang-19", "libclang-rt-19-dev:libclang-rt-19-dev"]
LTO = ["lld-19:ld.lld-19", "llvm-19:llvm-ar-19"]
TRACE = ["systemtap-sdt-dev", "gdb"]
CARGO = ("python3", "cargo", "librust-cc-dev:librust-cc-dev")
RUST_WINDOWS = ["wine", "libstd-rust-dev-windows:libstd-rust-dev-windows", "rustc:/usr/bin/rustc", "cargo:/usr/bin/cargo",
                "gcc-mingw-w64-x86-64:x86_64-w64-mingw32-gcc"]
RUST_WANTS = (("the layout of Rust sources", ["rustfmt"]), ("clippy", ["rust-clippy:cargo-clippy"]))

# Labels of tests of the release build that take minutes together.
SLOW = "package|programs|bugs"

MISSING = "a tool is missing"

TESTS_PER_JOB = 2


@dataclasses.dataclass(frozen=True)
class Part:
    name: str
    group: str  # quick and rest: continuous integration; the others are longer, or parts of those once more
    preset: str
    what: str
    select: tuple = ()  # arguments of ctest
    needs: tuple = ()  # beside those of every build
    wants: tuple = ()  # (what is skipped without them, needs)
    is_optional: bool = False  # skipped as a whole, without a failure, if a need cannot be met
    platform: bool = False  # `preset` is the name of a file in cmake/toolchains
    options: tuple = ()  # of cmake
    script: str = ""  # builds and checks by itself, with the part's name as its argument; takes the place of cmake and ctest
    build: str = ""  # of another platform, which this one runs in another environment
    toolchain: str = ""  # a file in cmake/toolchains, if that has not the name of the build
    environment: tuple = ()  # (name, value)
    targets: tuple = ()  # of cmake, if the tests need no others



def kinds(*names):
    """The option of cmake that leaves the tests of other kinds out of a build (test/CMakeLists.txt)."""
    return (f"-DMI_TEST_KINDS={';'.join(names)}",)


NIM = "test/nim/run.py"
PARTS = [
    Part("release", "quick", "release", "all tests of the library that users get, style, models and instruction counts",
         ("-LE", f"{SLOW}|command|proof"), ("python3", "valgrind", "binutils:objdump", "relacy-dev:relacy-dev"), (("tests of probes", TRACE),)),
    Part("release-slow", "rest", "release", "packaging, quick real programs, programs with one bug each", ("-L", SLOW),
         ("python3", "binutils:objdump", "pkg-config"), (("package tests with clang", CLANG + LTO),)),
    Part("command", "rest", "release", "the command mimalloc, published pages, the Python package", ("-L", "command"),
         ("python3", "python3-click", "python3-rich", "python3-pytest", "python3-pyelftools", "python3-prometheus-client",
          "python3-setuptools", "python3-wheel", "python3-venv"),
         (("scrapes by Prometheus", ["prometheus:promtool"]), ("flame graphs in a browser", ["chromium"])), is_optional=True,
         targets=("mimalloc",)),
    Part("proof", "rest", "release", "proofs of arithmetic by a model checker, from PyPI if there is none", ("-L", "proof"), ("python3",),
         environment=(("MI_PROOF_INSTALL", "1"),), targets=("mimalloc",)),
    Part("debug", "rest", "debug", "the library with internal checks; with all checks the release build has it", ("-LE", "all-checks"),
         ("python3",)),
    Part("cxx", "rest", "cxx", "the library compiled as C++", ("-L", "api|stress", "-R", "shared"), options=kinds("api", "stress")),
    Part("secure", "rest", "secure", "the library with checks of blocks (MI_SECURE)", ("-L", "unit|api|bugs"), ("python3",),
         options=kinds("unit", "plain", "api", "bugs")),
    Part("secure-full", "rest", "secure-full", "the library with all checks (MI_SECURE_FULL)", ("-L", "unit|api|modes|fault|bugs"), ("python3",),
         options=kinds("unit", "plain", "api", "modes", "fault", "bugs")),
    Part("by-key", "rest", "by-key", "thread-local variables as on macOS and OpenBSD, by a key", ("-R", "^(unit|api|override)-|modes-thread"),
         options=kinds("unit", "api", "override", "modes")),
    Part("level3", "rest", "level3", "the library with the interface of version 3: what differs in it",
         ("-L", "unit|api|modes", "-R", "^(unit|api)-|^modes-(heap|thread|realloc|statistics|publish|profile|error|exit).*-shared$"),
         options=kinds("unit", "api", "modes")),
    Part("asan", "rest", "asan", "the address sanitizer"),
    Part("ubsan", "rest", "ubsan", "the undefined behaviour sanitizer", ("-L", "unit|api"), options=kinds("unit", "api")),
    Part("tsan", "rest", "tsan", "the thread sanitizer", ("-L", "unit|modes|stress|fault"), options=kinds("unit", "modes", "stress", "fault")),
    Part("clang", "rest", "clang-release", "clang", ("-L", "api|unit|fault|override|preload"), tuple(CLANG), is_optional=True,
         options=kinds("api", "unit", "fault", "override", "preload")),
    Part("clang-asan", "rest", "clang-asan", "clang, the address sanitizer and the fuzzer", ("-L", "fuzz|unit"), tuple(CLANG),
         is_optional=True, options=kinds("fuzz", "unit")),
    *(Part(f"bugs-{preset}", "bugs", preset, "programs with one bug each: the detections are those in test/bugs/table.toml",
           ("-L", "bugs"), ("python3",)) for preset in ("release", "debug", "secure", "secure-full")),
    Part("packages", "package", "release", "packaging, also with package managers and other versions of CMake (uses registries)",
         ("-C", "long", "-R", "^package-"), ("python3", "binutils:objdump", "pkg-config"),
         (("package tests with clang", CLANG + LTO), ("package-nim", ["nim"]), ("package-debian", ["dpkg-dev:dpkg-buildpackage", "debhelper:dh", "lintian", "gpg"]),
          ("package-container", ["buildah", "mmdebstrap"])), targets=("mimalloc",)),
    Part("rust", "rest", "rust", "the crate for Rust, as its users get it, without a registry", (), CARGO, RUST_WANTS, is_optional=True,
         script="test/rust/run.py"),
    Part("rust-registry", "rust", "rust", "the same with other compilers, all features, and other crates for mimalloc (uses registries)", (),
         (*BUILD, *CARGO, "binutils:readelf"), (("the feature valgrind", ["valgrind"]), ("tests on Windows", RUST_WINDOWS)),
         script="test/rust/run.py"),
    Part("nim", "rest", "nim", "the Nim package with Nim 1.6 and 2 (from PyPI): installed, in release builds, with LTO, secure", (),
         ("python3", "nim", "git"), (("Nim 2", ["python3-pip:pip3"]),), script=NIM, is_optional=True),
    Part("nim-all", "package", "nim", "the same, and with clang, C++, musl, sanitizers, valgrind, debug builds, the shared library", (),
         ("python3", "nim", "git", "clang-19", "valgrind", "musl-tools:musl-gcc"), (("Nim 2", ["python3-pip:pip3"]),), script=NIM),
    Part("tools-valgrind", "tools", "valgrind", "programs under valgrind", ("-C", "long", "-L", "tools"),
         ("python3", "valgrind", "binutils:readelf")),
    Part("tools-asan", "tools", "asan", "programs under the address sanitizer", ("-L", "tools"), ("python3",)),
    Part("tools-release", "tools", "release", "probes for tracers, real programs under valgrind", ("-C", "long", "-L", "tools"),
         ("python3", "valgrind"), (("tests of probes", TRACE),)),
]

# What a table in docs/platforms.md is made from.  Each is one toolchain file; the tests run under its emulator.
QEMU = ("python3", "qemu-user:qemu-aarch64")


PLATFORM_TESTS = ("-L", "unit|api|override|preload|stress|fuzz")
KINDS = kinds("unit", "api", "override", "preload", "stress", "fuzz")


def cross(name, triple, packages, what, **more):
    return Part(name, "platforms", name, what, PLATFORM_TESTS,
                (*QEMU, f"{packages[0]}:{triple}-gcc", f"{packages[1]}:{triple}-g++", *packages[2:]), platform=True, options=KINDS, **more)


# With clang and lld in place of GCC and its linker, and again with programs and library optimised together.
CLANG_TESTS = ("-L", "override|preload|stress", "-E", "cliffs|thread-keys|unload|dlopen")


def cross_clang(name, triple, packages, what, lto):
    return Part(f"{name}-clang{'-lto' if lto else ''}", "platforms", f"{name}-clang{'-lto' if lto else ''}",
                f"{what}, clang and lld{', thin LTO' if lto else ''}", CLANG_TESTS,
                ("python3", "qemu-user:qemu-aarch64", f"{packages[0]}:{triple}-gcc", f"{packages[1]}:{triple}-g++", *packages[2:], CLANG[0], *LTO),
                platform=True, toolchain=name,
                options=(*kinds("override", "preload", "stress"), "-DMI_CROSS_CLANG=ON", f"-DCMAKE_INTERPROCEDURAL_OPTIMIZATION={'ON' if lto else 'OFF'}"))


ARM64 = ("gcc-aarch64-linux-gnu", "g++-aarch64-linux-gnu", "libc6-dev-arm64-cross")
RISCV64 = ("gcc-riscv64-linux-gnu", "g++-riscv64-linux-gnu", "libc6-dev-riscv64-cross")
ARMHF = ("gcc-arm-linux-gnueabihf", "g++-arm-linux-gnueabihf", "libc6-dev-armhf-cross")
S390X = ("gcc-s390x-linux-gnu", "g++-s390x-linux-gnu", "libc6-dev-s390x-cross")
POWER = ("gcc-powerpc64le-linux-gnu", "g++-powerpc64le-linux-gnu", "libc6-dev-ppc64el-cross")
X86_32 = ("python3", "gcc-12-multilib", "g++-12-multilib", "libc6-dev-i386")
MUSL = ("python3", "musl-tools:musl-gcc")
WASM_TESTS = ("-L", "unit|api|override|stress|fuzz")
WASI = ("python3", "nodejs:node", "clang-19", "lld-19:wasm-ld-19", "llvm-19:llvm-ar-19", "wasi-libc:wasi-libc",
        "libclang-rt-19-dev-wasm32:libclang-rt-19-dev-wasm32", "libc++-19-dev-wasm32:libc++-19-dev-wasm32",
        "libc++abi-19-dev-wasm32:libc++abi-19-dev-wasm32")
EMSCRIPTEN = ("python3", "nodejs:node", "emscripten:emcc")
PLATFORMS = [
    Part("x86-32", "rest", "x86-32", "Linux, x86 with 32 bits", PLATFORM_TESTS, X86_32, platform=True, options=KINDS, is_optional=True),
    Part("musl", "rest", "musl", "Linux, x86-64, C library musl", PLATFORM_TESTS, MUSL, platform=True, options=KINDS, is_optional=True),
    *(Part(name, "platforms", name, what, PLATFORM_TESTS, (*needs, CLANG[0], *LTO), platform=True, options=KINDS) for name, what, needs in (
        ("x86-32-clang", "the same as x86-32 with clang and lld", X86_32), ("musl-clang", "the same as musl with clang and lld", MUSL),
        ("clang-lto", "the library that users get, optimised when it is linked, by clang and lld", ("python3",)),
        ("clang-thin-lto", "the same with ThinLTO", ("python3",)))),
    cross("arm64", "aarch64-linux-gnu", ARM64, "Linux, AArch64, emulated"),
    cross("arm64-16k", "aarch64-linux-gnu", ARM64, "the same with OS pages of 16 KiB", build="arm64", environment=(("QEMU_PAGESIZE", "16384"),)),
    cross("arm64-64k", "aarch64-linux-gnu", ARM64, "the same with OS pages of 64 KiB", build="arm64", environment=(("QEMU_PAGESIZE", "65536"),)),
    Part("arm64-64k-secure", "platforms", "arm64-64k-secure", "Linux, AArch64, OS pages of 64 KiB, all checks of blocks, emulated", ("-L", "stress"),
         (*QEMU, f"{ARM64[0]}:aarch64-linux-gnu-gcc", f"{ARM64[1]}:aarch64-linux-gnu-g++", *ARM64[2:]), platform=True, toolchain="arm64",
         options=(*kinds("stress"), "-DMI_SECURE_FULL=ON"), environment=(("QEMU_PAGESIZE", "65536"),)),
    cross("riscv64", "riscv64-linux-gnu", RISCV64, "Linux, RISC-V 64, emulated"),
    cross("armhf", "arm-linux-gnueabihf", ARMHF, "Linux, ARM 32, emulated"),
    cross("s390x", "s390x-linux-gnu", S390X, "Linux, s390x, big endian, emulated"),
    cross("ppc64le", "powerpc64le-linux-gnu", POWER, "Linux, POWER, emulated"),
    cross("ppc64le-64k", "powerpc64le-linux-gnu", POWER, "the same with OS pages of 64 KiB", build="ppc64le",
          environment=(("QEMU_PAGESIZE", "65536"),)),
    Part("wasi", "platforms", "wasi", "WebAssembly under WASI, run by node", WASM_TESTS, WASI, platform=True),
    Part("wasi-wasmtime", "platforms", "wasi", "the same, run by wasmtime (from PyPI)", WASM_TESTS, (*WASI, "python3-venv"),
         platform=True, build="wasi", environment=(("MI_TEST_WASMTIME", "1"),)),
    Part("emscripten", "platforms", "emscripten", "WebAssembly with Emscripten, run by node", WASM_TESTS, EMSCRIPTEN, platform=True),
    Part("emscripten-threads", "platforms", "emscripten-threads", "the same with threads", ("-R", "^((unit|api|override|stress|fuzz)-|modes-thread-(exit|late))"),
         EMSCRIPTEN, platform=True),
]
PLATFORMS += [
    cross_clang(name, triple, packages, what, lto)
    for name, triple, packages, what in (("arm64", "aarch64-linux-gnu", ARM64, "Linux, AArch64, emulated"),
                                         ("riscv64", "riscv64-linux-gnu", RISCV64, "Linux, RISC-V 64, emulated"),
                                         ("armhf", "arm-linux-gnueabihf", ARMHF, "Linux, ARM 32, emulated"),
                                         ("s390x", "s390x-linux-gnu", S390X, "Linux, s390x, big endian, emulated"))
    for lto in (False, True)
]
PLATFORMS += [
    Part("arm64-tags", "platforms", "arm64-tags", "Linux, AArch64 with memory tags, emulated",
         ("-L", "api|override|preload|stress|fuzz", "-E", "cliffs|dlopen"),
         (*QEMU, f"{ARM64[0]}:aarch64-linux-gnu-gcc", f"{ARM64[1]}:aarch64-linux-gnu-g++", *ARM64[2:]), platform=True, toolchain="arm64",
         options=(*kinds("api", "override", "preload", "stress", "fuzz"), "-DMI_MEMORY_TAGGING=ON")),
    Part("arm64-programs", "platforms", "arm64-programs", "real programs of AArch64 with the library preloaded, emulated (uses registries)", (),
         (*BUILD, *QEMU, f"{ARM64[0]}:aarch64-linux-gnu-gcc", f"{ARM64[1]}:aarch64-linux-gnu-g++", *ARM64[2:]),
         script="test/platforms/real_programs.py"),
]
WINE = ("python3", "wine", "gcc-mingw-w64-x86-64-posix", "g++-mingw-w64-x86-64-posix")
PLATFORMS += [
    Part(name, "platforms", name, what, ("-L", f"unit|api|stress|fuzz|windows|redirect{more}"), (*WINE, *needs), platform=True)
    for name, what, more, needs in (("windows", "Windows, x86-64, GCC, msvcrt, under wine", "|modes", ()),
                                    ("windows-ucrt", "Windows, x86-64, GCC, universal C runtime, under wine", "", ()),
                                    ("windows-clang", "Windows, x86-64, clang, msvcrt, under wine", "", ("clang-19",)))
]
PLATFORMS.append(Part("minject", "platforms", "release", "minject, which changes executables of Windows; they run under wine",
                      ("-C", "long", "-L", "minject"), ("python3", "gcc-mingw-w64-x86-64:x86_64-w64-mingw32-gcc", "wine"),
                      (("programs of 32 bits", ["gcc-mingw-w64-i686:i686-w64-mingw32-gcc"]),
                       ("programs of other linkers", ["clang-19", "lld-19:lld-link-19", "llvm-19:llvm-readobj-19"]))))
PLATFORMS.append(Part("windows-tools", "platforms", "windows", "minject of Windows with the library, and events for ETW; under wine",
                      ("-L", "minject|etw"), ("python3", "gcc-mingw-w64-x86-64:x86_64-w64-mingw32-gcc-posix",
                                              "g++-mingw-w64-x86-64:x86_64-w64-mingw32-g++-posix", "wine"), platform=True))
PARTS += PLATFORMS

# Compiled and linked, and looked into; the script installs what it needs from PyPI.  Nothing of them is run.
COMPILE = "test/platforms/compile.py"
PARTS += [
    *(Part(name, "compiled", name, what, (), ("python3", LTO[1], CLANG[0]), script=COMPILE) for name, what in (
        ("macos", "macOS, arm64 and x86-64, compiled and linked"), ("freebsd", "FreeBSD, x86-64, compiled and linked"),
        ("netbsd", "NetBSD, x86-64, compiled and linked"), ("openbsd", "OpenBSD, x86-64, compiled and linked"))),
    Part("windows-32", "compiled", "windows-32", "Windows, x86 with 32 bits, compiled and linked, with all tests", (),
         ("python3", LTO[1], "gcc-mingw-w64-i686-posix", "g++-mingw-w64-i686-posix"), script=COMPILE),
    Part("msvc", "rest", "msvc", "Windows, ABI of MSVC, compiled against declarations of our own", (), ("python3", CLANG[0], LTO[1]),
         script=COMPILE, is_optional=True),
    Part("stubs", "rest", "stubs", "Android, DragonFly, Haiku and iOS, compiled against declarations of our own", (),
         ("python3", CLANG[0]), script=COMPILE, is_optional=True),
]

SITE = "test/site/run.py"
PARTS += [
    Part("site", "rest", "site", "the documentation site: build, links, every function (uses PyPI, or Debian's Sphinx)", (),
         ("python3", "graphviz:dot", "mscgen"), script=SITE, build="release", is_optional=True),
    Part("site-browser", "documents", "site", "the same, and every page at two widths and the search in a browser", (),
         ("python3", "graphviz:dot", "mscgen", "chromium", "chromium-driver:chromedriver", "python3-selenium:python3-selenium"), script=SITE,
         build="release", is_optional=True),
]

NAMES = {part.name: [part] for part in PARTS}
for each in PARTS:
    NAMES.setdefault(each.group, []).append(each)
NAMES["all"] = NAMES["quick"] + NAMES["rest"]
NAMES["platforms"] = PLATFORMS
# Families of platforms, for `make test-FAMILY`.
NAMES["wasm"] = [part for part in PLATFORMS if part.name.startswith(("wasi", "emscripten"))]
NAMES["emulated"] = [part for part in PLATFORMS if QEMU[1] in part.needs]
NAMES["windows-all"] = [part for part in PLATFORMS if part.name.startswith(("windows", "minject"))]


def chosen(names):
    """The parts of these names and groups, each once."""
    return list({part.name: part for name in names for part in NAMES[name]}.values())


@dataclasses.dataclass
class Outcome:
    part: Part
    seconds: float = 0
    passed: int = 0
    failed: list = dataclasses.field(default_factory=list)  # names of tests
    skipped: list = dataclasses.field(default_factory=list)  # (name of a test, why)
    trouble: str = ""  # why the part did not run


def reason_of(case):
    """What a test says when it skips itself, or ctest does for it."""
    said = case.findtext("system-out") or ""
    for line in said.splitlines():
        if line.lower().startswith("skip"):
            return line.partition(":")[2].strip() or line.strip()
    return "it does not say why"


def is_skipped(case):
    """Not run because the test said so; a program that is missing is not run either."""
    skipped = case.find("skipped")
    return case.get("status") == "notrun" and skipped is not None and skipped.get("message", "").startswith("SKIP_")


def read_results(outcome, text):
    """`text`: what ctest --output-junit has written, "" for nothing."""
    cases = list(xml.etree.ElementTree.fromstring(text).iter("testcase")) if text else []
    for case in cases:
        if case.get("status") == "run":
            outcome.passed += 1
        elif is_skipped(case):
            outcome.skipped.append((case.get("name"), reason_of(case)))
        else:
            outcome.failed.append(case.get("name"))
    if not cases:
        outcome.trouble = "no test was run"


def meets(needs):
    return not needs or subprocess.run(["scripts/need.sh", *needs], cwd=ROOT, check=False).returncode == 0


def build_of(part):
    return part.build or part.preset


def toolchain_of(part):
    return part.toolchain or build_of(part)


def build(part, jobs):
    configure = ["cmake", "--preset", part.preset, "--log-level=NOTICE", *part.options]
    if part.platform:
        configure = ["cmake", "-S", ".", "-B", f"build/{build_of(part)}", "--log-level=NOTICE", "-DCMAKE_BUILD_TYPE=Release",
                     f"-DCMAKE_TOOLCHAIN_FILE=cmake/toolchains/{toolchain_of(part)}.cmake", "-DMI_DEV_WARNINGS=ON",
                     "-DMI_BUILD_TESTS=ON", "-DMI_BUILD_BENCH=OFF", *part.options]
    if subprocess.run(configure, cwd=ROOT, stdout=subprocess.DEVNULL, check=False).returncode != 0:
        return False
    command = ["cmake", "--build", str(ROOT / "build" / build_of(part)), "--parallel", str(jobs),
               *(["--target", *part.targets] if part.targets else [])]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        said, is_terminal = [], sys.stdout.isatty()
        for line in process.stdout:
            said.append(line)
            if is_terminal and line.startswith("["):
                print(f"\r\033[K{line.rstrip()[:100]}", end="", flush=True)
        if is_terminal:
            print("\r\033[K", end="", flush=True)
    if process.returncode != 0:
        sys.stdout.writelines(line for line in said if not line.startswith("["))
    return process.returncode == 0


def run_part(part, jobs):
    outcome = Outcome(part)
    start = time.monotonic()
    directory = ROOT / "build" / build_of(part)
    results = directory / "Testing" / f"results-{part.name}.xml"
    if not meets(BUILD + list(part.needs)):
        outcome.trouble = MISSING
    else:
        for what, needs in part.wants:
            if not meets(needs):
                outcome.skipped.append((what, MISSING))
        if not part.script and not build(part, jobs):
            outcome.trouble = "it could not be built"
    if not outcome.trouble:
        if not part.script:
            print(f"built in {time.monotonic() - start:.0f} s", flush=True)
        results.parent.mkdir(parents=True, exist_ok=True)
        results.unlink(missing_ok=True)
        # Many tests wait more than they compute.
        ctest = ["ctest", "--test-dir", str(directory), "--parallel", str(TESTS_PER_JOB * jobs), "--output-on-failure",
                 "--output-junit", str(results), *part.select]
        subprocess.run([sys.executable, part.script, part.name] if part.script else ctest, cwd=ROOT,
                       env={**os.environ, **dict(part.environment)}, check=False)
        read_results(outcome, results.read_text(encoding="utf-8", errors="replace") if results.exists() else "")
    outcome.seconds = time.monotonic() - start
    return outcome


def is_skipped_part(outcome):
    return outcome.part.is_optional and outcome.trouble == MISSING


def is_bad(outcome):
    return bool(outcome.failed) or bool(outcome.trouble and not is_skipped_part(outcome))


def minutes(seconds):
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def left_over(outcomes):
    done = {outcome.part.name for outcome in outcomes}
    left = [part.name for part in NAMES["all"] if part.name not in done]
    if not left:
        return "Nothing is left of what continuous integration runs."
    names = "rest" if left == [part.name for part in NAMES["rest"]] else " ".join(left)
    command = "make test-rest" if names == "rest" else f"scripts/run-tests.py {names}"
    return f"Not run: {', '.join(left)}.  `{command}` runs them."


def report(outcomes):
    print(f"\n{'part':<17}{'passed':>8}{'failed':>8}{'skipped':>9}{'min:s':>8}")
    for outcome in outcomes:
        print(f"{outcome.part.name:<17}{outcome.passed:>8}{len(outcome.failed):>8}{len(outcome.skipped):>9}"
              f"{minutes(outcome.seconds):>8}  {outcome.trouble or outcome.part.what}")
    for outcome in outcomes:
        for name, why in outcome.skipped:
            print(f"skipped: {name} ({outcome.part.name}): {why}")
    for outcome in outcomes:
        for name in outcome.failed:
            print(f"FAILED: {name}; again: ctest --test-dir build/{build_of(outcome.part)} -R '^{name}$' --output-on-failure")
        if outcome.trouble:
            print(f"{'skipped' if is_skipped_part(outcome) else 'FAILED'}: {outcome.part.name}: {outcome.trouble}")
    print(left_over(outcomes))


def record(outcomes):
    """Notes what ran in docs/platforms.json, and makes docs/platforms.md, of those parts that the page has rows for."""
    sys.path.insert(0, str(ROOT / "scripts"))
    import platforms
    names = [outcome.part.name for outcome in outcomes if not outcome.trouble]
    platforms.record(ROOT, [name for name in names if name in {row.part for row in platforms.ROWS}])
    (ROOT / platforms.PAGE).write_text(platforms.page(ROOT), encoding="utf-8")


def self_test():
    text = """<testsuite>
      <testcase name="good" status="run"/>
      <testcase name="bad" status="fail"><failure message="Failed"/></testcase>
      <testcase name="absent" status="notrun"><skipped message="Unable to find executable"/></testcase>
      <testcase name="told" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/>
        <system-out>1 check\nskipped: limits: not root</system-out></testcase>
      <testcase name="silent" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/><system-out/></testcase>
    </testsuite>"""
    full, none, optional = Outcome(PARTS[0]), Outcome(PARTS[0]), Outcome(NAMES["clang"][0], trouble=MISSING)
    broken = Outcome(NAMES["clang"][0], trouble="it could not be built")
    read_results(full, text)
    read_results(none, "")
    wrong = [what for what, holds in {
        "passed": full.passed == 1,
        "failed": full.failed == ["bad", "absent"],
        "skipped": full.skipped == [("told", "limits: not root"), ("silent", "it does not say why")],
        "is_bad": [is_bad(outcome) for outcome in (full, none, optional, broken, Outcome(PARTS[0], passed=1))] == [True, True, False, True, False],
        "left_over": "make test-rest" in left_over([Outcome(NAMES["quick"][0])]) and
                     "make" not in left_over([Outcome(part) for part in PARTS if part.name != "tsan"]) and
                     "Nothing" in left_over([Outcome(part) for part in PARTS]),
        "chosen": chosen(["tsan", "all", "quick"])[:2] == [NAMES["tsan"][0], PARTS[0]] and chosen(["all", "rest"]) == NAMES["all"],
        "presets": all(f'"{part.preset}"' in (ROOT / "CMakePresets.json").read_text(encoding="utf-8")
                       for part in PARTS if not part.platform and not part.script),
        "toolchains": all((ROOT / f"cmake/toolchains/{toolchain_of(part)}.cmake").exists() for part in PARTS if part.platform),
    }.items() if not holds]
    print(f"self-test: {len(wrong)} wrong {' '.join(wrong)}")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"one of: all {' '.join(sorted(NAMES))}")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many compilers run at a time; of tests twice as many")
    parser.add_argument("--record", action="store_true", help="note the results in docs/platforms.md")
    parser.add_argument("--list", action="store_true", help="list the parts and exit")
    parser.add_argument("--self-test", action="store_true", help="test this script")
    args = parser.parse_args()
    if args.self_test:
        return self_test()
    if args.list or not args.parts:
        for part in PARTS:
            print(f"{part.name:<19}{part.group:<10}{part.what}")
        print("groups: " + ", ".join(name for name, parts in NAMES.items() if len(parts) > 1))
        return 0
    unknown = [name for name in args.parts if name not in NAMES]
    if unknown:
        parser.error(f"no such part: {', '.join(unknown)}; --list shows them")
    parts = chosen(args.parts)
    outcomes = []
    for i, part in enumerate(parts):
        print(f"\n=== {i + 1} of {len(parts)}: {part.name}: {part.what}", flush=True)
        outcomes.append(run_part(part, args.jobs))
    report(outcomes)
    if args.record:
        record(outcomes)
    return 1 if any(is_bad(outcome) for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
