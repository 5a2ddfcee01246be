#!/usr/bin/env python3
"""Is the library usable by others in all the ways that the README says?

Installs a release build in both layouts, moves each installed tree elsewhere, and builds a small program against it by
find_package, by pkg-config (shared and static) and with the object; then from the sources as a sub-project and as a
single file, in C and in C++.  Checks which versions find_package accepts, and what the shared library needs and is called."""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
failures = []


def run(*command, **options):
    command = [str(c) for c in command]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, **options)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\n{result.stdout[-3000:]}")
    return result.stdout


def case(name, function, *args):
    try:
        function(*args)
        print(f"ok    {name}")
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        failures.append(name)
        print(f"FAIL  {name}: {error}")


def expect(condition, text):
    if not condition:
        raise RuntimeError(text)


class Package:
    def __init__(self, work, compiler, toplevel, version):
        self.work, self.compiler, self.toplevel, self.version = work, compiler, toplevel, version
        self.name = "toplevel" if toplevel else "versioned"
        self.prefix = work / f"moved-{self.name}"
        self.env = {k: v for k, v in os.environ.items() if k != "DESTDIR"}

    def cmake(self, source, build, *args):
        run("cmake", "-S", source, "-B", build, f"-DCMAKE_C_COMPILER={self.compiler}", "-DCMAKE_BUILD_TYPE=Release", *args,
            env=self.env)

    def install(self):
        build, prefix = self.work / f"build-{self.name}", self.work / f"installed-{self.name}"
        self.cmake(ROOT, build, "-DMI_BUILD_TESTS=OFF", f"-DMI_INSTALL_TOPLEVEL={'ON' if self.toplevel else 'OFF'}",
                   "-DCMAKE_INSTALL_LIBDIR=lib")
        run("cmake", "--build", build, "--parallel", "2", env=self.env)
        run("cmake", "--install", build, "--prefix", prefix, env=self.env)
        prefix.rename(self.prefix)   # nothing may remember where it was installed
        shutil.rmtree(build)         # ... or built
        versioned = "" if self.toplevel else f"/mimalloc-{self.version}"
        for path in (f"lib/libmimalloc.so.{self.version}", "lib/libmimalloc.so", f"lib{versioned}/libmimalloc.a",
                     f"lib{versioned}/mimalloc.o", f"include{versioned}/mimalloc.h", "lib/pkgconfig/mimalloc.pc",
                     f"lib/cmake/mimalloc{'' if self.toplevel else '-' + self.version}/mimalloc-config.cmake"):
            expect((self.prefix / path).exists(), f"{path} was not installed")

    def find_package(self):
        build = self.work / f"find-{self.name}"
        self.cmake(HERE / "consumer", build, f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run("cmake", "--build", build, env=self.env)
        for program in ("with-shared", "with-static", "with-object"):
            run(build / program)

    def versions(self):
        major, minor = map(int, self.version.split("."))
        good = ["", str(major), f"{major}.0", f"{major}.{minor}", f"{major}.{minor}.9", f"{major}...{major}.{minor}",
                f"{major}.1...<{major + 1}", f"{self.version};EXACT"]
        bad = [str(major - 1), str(major + 1), f"{major}.{minor + 1}", f"{major - 1}...{major}.{minor}",
               f"{major}...{major + 1}", f"{major}.0...{major}.{minor - 1}", f"{major}.{minor - 1};EXACT"]
        for wanted, is_good in [(v, True) for v in good] + [(v, False) for v in bad]:
            build = self.work / "versions"
            shutil.rmtree(build, ignore_errors=True)
            try:
                self.cmake(HERE / "consumer", build, f"-DCMAKE_PREFIX_PATH={self.prefix}", f"-DWANTED_VERSION={wanted}")
                found = True
            except RuntimeError:
                found = False
            expect(found == is_good, f"find_package(mimalloc {wanted}) {'succeeded' if found else 'failed'}")

    def pkg_config(self):
        env = {**self.env, "PKG_CONFIG_LIBDIR": str(self.prefix / "lib/pkgconfig")}
        expect(run("pkg-config", "--modversion", "mimalloc", env=env).strip() == self.version, "pkg-config: wrong version")
        for static in ([], ["--static"]):
            flags = run("pkg-config", *static, "--cflags", "--libs", "mimalloc", env=env).split()
            program = self.work / f"pc-{self.name}{'-static' if static else ''}"
            run(self.compiler, "-O1", HERE / "consumer/main.c", "-o", program, *flags, *(["-static"] if static else []))
            run(program, env={**env, "LD_LIBRARY_PATH": str(self.prefix / "lib")})

    def shared_library(self):
        dynamic = run("readelf", "-d", self.prefix / "lib/libmimalloc.so")
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
        expect(all(re.match(r"(libc|ld-linux|libpthread|ld-musl)\b.*", n) for n in needed), f"needs more than libc: {needed}")
        expect(f"[libmimalloc.so.{self.version.split('.')[0]}]" in dynamic, "wrong soname")
        symbols = run("nm", "-D", "--defined-only", self.prefix / "lib/libmimalloc.so").split("\n")
        internal = [s for s in symbols if re.search(r" _mi_(?!option_last)", s)]
        expect(not internal, f"exports internal names: {internal}")


def sub_project(work, compiler):
    build = work / "sub-project"
    run("cmake", "-S", HERE / "consumer", "-B", build, f"-DMIMALLOC_SOURCE={ROOT}", f"-DCMAKE_C_COMPILER={compiler}")
    run("cmake", "--build", build, "--parallel", "2")
    for program in ("with-shared", "with-static", "with-object"):
        run(build / program)
    expect(not (build / "mimalloc/test").exists(), "the tests were added to somebody else's project")


def single_source(work, compiler, flags):
    program = work / "single"
    run(compiler, "-O1", "-Wall", "-Wextra", "-Werror", *flags, f"-I{ROOT}/include", ROOT / "src/static.c", "-c", "-o", work / "single.o")
    run(compiler, f"-I{ROOT}/include", HERE / "consumer/main.c", work / "single.o", "-o", program)
    run(program)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", default="cc")
    parser.add_argument("--build-dir", type=pathlib.Path, default=ROOT / "build/package")
    args = parser.parse_args()
    for tool in ("cmake", "pkg-config", "readelf", "nm"):
        if shutil.which(tool) is None:
            print(f"SKIP package: {tool} is not installed")
            return 77
    work = args.build_dir.resolve()
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    header = (ROOT / "include/mimalloc.h").read_text(encoding="utf-8")
    number = int(re.search(r"#define MI_MALLOC_VERSION +(\d+)", header)[1])
    version = f"{number // 10000}.{number // 100 % 100}"
    for toplevel in (False, True):
        package = Package(work, args.compiler, toplevel, version)
        case(f"{package.name}: install", package.install)
        case(f"{package.name}: find_package", package.find_package)
        case(f"{package.name}: pkg-config", package.pkg_config)
        if not toplevel:
            case("versions that find_package accepts", package.versions)
            case("the shared library", package.shared_library)
    case("sub-project", sub_project, work, args.compiler)
    for flags in ([], ["-DNDEBUG"], ["-DNDEBUG", "-DMI_MALLOC_OVERRIDE", "-fno-builtin-malloc"], ["-DMI_DEBUG=3"]):
        case(f"single source {' '.join(flags)}", single_source, work, args.compiler, flags)
    cxx = {"gcc": "g++", "cc": "c++"}.get(os.path.basename(args.compiler), args.compiler.replace("clang", "clang++").replace("gcc", "g++"))
    case("single source as C++", single_source_cxx, work, args.compiler, cxx)
    if not failures:
        shutil.rmtree(work, ignore_errors=True)
    return 1 if failures else 0


def single_source_cxx(work, compiler, cxx):
    run(cxx, "-x", "c++", "-std=gnu++17", "-O1", "-DNDEBUG", f"-I{ROOT}/include", "-c", ROOT / "src/static.c", "-o", work / "single-cxx.o")
    run(compiler, f"-I{ROOT}/include", "-c", HERE / "consumer/main.c", "-o", work / "main.o")
    run(cxx, work / "main.o", work / "single-cxx.o", "-o", work / "single-cxx")
    run(work / "single-cxx")


if __name__ == "__main__":
    sys.exit(main())
