"""Clients that use CMake: find_package, add_subdirectory, FetchContent."""

import re
import shutil

from harness import (ALONE, HERE, OVERRIDDEN, ROOT, UNOPTIMISED, Failure, Skip, case, check_client, cmake_build,
                     cmake_configure, expect, need, run)
from installs import by_name, installs, prefix_of

# ---- find_package ----------------------------------------------------------------------------------------------------------

def find_package(ctx, install, cxx=False):
    prefix, build = prefix_of(ctx, install), ctx.dir / install.name
    output = cmake_configure(ctx, HERE / "find-package", build, f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release",
                             f"-DCLIENT_OBJECT={install.library}", f"-DCLIENT_CXX={'ON' if cxx else 'OFF'}")
    said = dict(line[3:].split("=", 1) for line in output.split("\n") if line.startswith("-- ") and "=" in line)
    for name, wanted in (("CMAKE_DIR", install.cmakedir(ctx)), ("LIBRARY_DIR", install.libdir),
                         ("OBJECT_DIR", install.objectdir(ctx)), ("INCLUDE_DIR", install.includedir(ctx)),
                         ("TARGET_DIR", install.libdir)):
        expect(said.get(f"MIMALLOC_{name}") == str(prefix / wanted), f"MIMALLOC_{name} is {said.get(f'MIMALLOC_{name}')}")
    expect(said["MIMALLOC_VERSION_DIR"] == install.cmakedir(ctx).split("/")[-1], "wrong MIMALLOC_VERSION_DIR")
    expect(said["mimalloc_VERSION"] == ctx.version(install.level), "wrong mimalloc_VERSION")
    cmake_build(build)
    for part in install.parts:
        check_client(build / f"with-{part}", install.wanted(ctx))
        if cxx and part != "object":
            check_client(build / f"cxx-with-{part}", {**install.wanted(ctx), "new": "ours"})
    if cxx and "static" in install.parts:
        check_client(build / "lto-with-static", {"version": ctx.numbers[install.level], **OVERRIDDEN})
    shutil.rmtree(build)


@case("find-package", installs=True)
def find_package_all(ctx):
    """Each kind of library of each install, and the variables that say where things are."""
    for install in installs(ctx):
        ctx.part(install.name, find_package, ctx, install, cxx=install.name in ("versioned", "cxx"))


def versions_of(ctx, level):
    """Requests that an installed package of this level serves, and some that it does not."""
    major, minor = map(int, ctx.version(level).split("."))
    other = 3 if level == 2 else 2
    good = ["", f"{major}", f"{major}.0", f"{major}.1", f"{major}.2", f"{major}.{minor}", f"{major}.{minor}.9",
            f"{major}...{major}.{minor}", f"{major}.1...<{major + 1}", f"{major}.{minor} EXACT"]
    bad = ["1.7", f"{major - 1}", f"{major}.{minor + 1}", f"{major + 1}", f"{other}", f"{other}.0", f"{other}.{minor}",
           f"{major - 1}...{major}.{minor}", f"{major}...{major + 1}", f"{major}.0...{major}.{minor - 1}",
           f"{major}.{minor - 1} EXACT"]
    return good, bad


def write_requests(ctx, prefix, requests):
    """One project that asks for many versions, one after the other, and says what it got."""
    lines = ["cmake_minimum_required(VERSION 3.19)", "project(versions LANGUAGES C)", f'set(CMAKE_PREFIX_PATH "{prefix}")']
    for wanted in requests:
        lines += ["unset(mimalloc_DIR CACHE)", "set(mimalloc_FOUND OFF)", f"find_package(mimalloc {wanted} QUIET CONFIG)",
                  f'message(STATUS "[{wanted}]=${{mimalloc_FOUND}} ${{mimalloc_VERSION}}")']
    (ctx.dir / "CMakeLists.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    output = cmake_configure(ctx, ctx.dir, ctx.dir / "build")
    return {line[4:].split("]=")[0]: line.split("]=")[1].split() for line in output.split("\n") if line.startswith("-- [")}


def versions(ctx, install):
    good, bad = versions_of(ctx, install.level)
    answers = write_requests(ctx, prefix_of(ctx, install), good + bad)
    for wanted in good + bad:
        found = answers[wanted][0] == "1"
        expect(found == (wanted in good), f"find_package(mimalloc {wanted}): {'found' if found else 'not found'}")


@case("versions", installs=True)
def versions_all(ctx):
    """Which versions find_package takes."""
    for install in installs(ctx, "versioned", "toplevel", "level3"):
        ctx.part(install.name, versions, ctx, install)


@case("levels", installs=True)
def levels(ctx):
    """Levels 2 and 3 in one directory: find_package tells them apart."""
    if not ctx.has_level(3):
        raise Skip("the header has no level 3")
    prefix = ctx.dir / "both"
    prefix.mkdir()
    for name in ("versioned", "level3"):
        run("cp", "-a", f"{prefix_of(ctx, by_name(ctx, name))}/.", prefix)
    for name, wanted in (("versioned", "2.0"), ("level3", "3")):
        install = by_name(ctx, name)
        build = ctx.dir / name
        cmake_configure(ctx, HERE / "find-package", build, f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCLIENT_WANTS={wanted}",
                        f"-DCLIENT_OBJECT={install.library}")
        cmake_build(build)
        for part in install.parts:
            ctx.part(f"{wanted} with {part}", check_client, build / f"with-{part}", install.wanted(ctx))


# ---- the source tree as a part of a project ----------------------------------------------------------------------------------

ALL = ("mimalloc", "mimalloc-static", "mimalloc-obj")

# how, settings, targets that are then there, what the client prints besides
SUB_PROJECTS = [
    ("add_subdirectory", "", ALL, OVERRIDDEN),
    ("add_subdirectory", "MI_OVERRIDE=OFF MI_BUILD_SHARED=OFF", ALL[1:], ALONE),
    ("add_subdirectory", "MI_API_LEVEL=3 MI_BUILD_TESTS=OFF", ALL, OVERRIDDEN),
    ("FetchContent", "MI_BUILD_SHARED=OFF MI_BUILD_OBJECT=OFF MI_BUILD_TESTS=OFF", ALL[1:2], OVERRIDDEN),
    ("FetchContent", "MI_BUILD_STATIC=OFF MI_BUILD_OBJECT=OFF MI_INSTALL_TOPLEVEL=ON", ALL[:1], OVERRIDDEN),
    ("FetchContent", "MI_API_LEVEL=3 MI_BUILD_STATIC=OFF MI_BUILD_SHARED=OFF", ALL[2:], OVERRIDDEN),
    ("find_package", "MI_BUILD_SHARED=OFF MI_BUILD_OBJECT=OFF", ALL[1:2], OVERRIDDEN),
]


def sub_project(ctx, how, settings, targets, printed):
    level = 3 if "MI_API_LEVEL=3" in settings else 2
    if not ctx.has_level(level):
        raise Skip("the header has no level 3")
    if how == "find_package" and cmake_version() < (3, 24):
        raise Skip("OVERRIDE_FIND_PACKAGE needs CMake 3.24")
    build = ctx.dir / "build"
    shutil.rmtree(build, ignore_errors=True)
    # without a build type: the client has none, and the allocator is to be optimised all the same
    cmake_configure(ctx, HERE / "sub-project", build, f"-DMIMALLOC_SOURCE={ROOT}", f"-DCLIENT_HOW={how}",
                    f"-DCLIENT_SETTINGS={settings}", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", *UNOPTIMISED)
    commands = (build / "compile_commands.json").read_text(encoding="utf-8")
    expect("-O2 -DNDEBUG" in commands, "the allocator is not optimised")
    cmake_build(build)
    built = {p.name[len("with-"):] for p in build.glob("with-*")}
    expect(built == set(targets), f"targets: {sorted(built)}")
    number = ctx.numbers[level]
    for target in targets:
        check_client(build / f"with-{target}", {"version": number, "header": number, "mi": "ours", **printed})
    expect(not (build / "a.out").exists(), "a.out is in somebody else's project")
    expect(not list(build.glob("*/test")) and not list(build.glob("_deps/*/test")), "the tests are in somebody else's project")


def cmake_version():
    return tuple(int(n) for n in run("cmake", "--version").split()[2].split(".")[:2])


def run_sub_projects(ctx, hows):
    for how, settings, targets, printed in SUB_PROJECTS:
        if how in hows:
            ctx.part(f"{how} {settings}", sub_project, ctx, how, settings, targets, printed)


@case("reinstall")
def reinstall(ctx):
    """Other kinds of libraries, installed over those that are there: all files for find_package stay."""
    build, prefix = ctx.dir / "build", ctx.dir / "prefix"
    for shared in ("OFF", "ON"):
        cmake_configure(ctx, ROOT, build, "-DMI_BUILD_TESTS=OFF", "-DMI_BUILD_OBJECT=OFF", f"-DMI_BUILD_SHARED={shared}",
                        *UNOPTIMISED)
        cmake_build(build)
        run("cmake", "--install", build, "--prefix", prefix)
        files = {path.name for path in (prefix / "lib").glob("**/cmake/*/*")}
        expect({"mimalloc-config.cmake", "mimalloc-config-version.cmake", "mimalloc.cmake"} <= files, f"there is only {files}")


@case("add-subdirectory")
def add_subdirectory(ctx):
    """The tree as a subdirectory, with settings as plain variables."""
    run_sub_projects(ctx, ("add_subdirectory",))
    ctx.part("a string that is a list", list_setting, ctx)


def list_setting(ctx):
    """A plain variable also decides about options that are strings."""
    build = ctx.dir / "list"
    cmake_configure(ctx, HERE / "sub-project", build, f"-DMIMALLOC_SOURCE={ROOT}", "-DCLIENT_HOW=add_subdirectory",
                    "-DCLIENT_SETTINGS=MI_EXTRA_CPPDEFS=CLIENT_A=1,CLIENT_B=2", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON")
    commands = (build / "compile_commands.json").read_text(encoding="utf-8")
    expect("-DCLIENT_A=1" in commands and "-DCLIENT_B=2" in commands, "MI_EXTRA_CPPDEFS is ignored")


@case("fetch-content")
def fetch_content(ctx):
    """The tree through FetchContent, also where find_package is then served by it."""
    run_sub_projects(ctx, ("FetchContent", "find_package"))


LINKER_PROJECT = """
cmake_minimum_required(VERSION 3.18)
project(linker LANGUAGES C)
add_link_options({option})
add_subdirectory({source} mimalloc)
"""


def linker(ctx, option, is_built):
    """GNU ld lays out the code by its own script, which other linkers do not read, or read in another way."""
    build = ctx.dir / "build"
    shutil.rmtree(build, ignore_errors=True)
    (ctx.dir / "CMakeLists.txt").write_text(LINKER_PROJECT.format(option=option, source=ROOT), encoding="utf-8")
    cmake_configure(ctx, ctx.dir, build, "-G", "Unix Makefiles", "-DMI_BUILD_STATIC=OFF", "-DMI_BUILD_OBJECT=OFF", *UNOPTIMISED)
    command = next(build.rglob("mimalloc.dir/link.txt")).read_text(encoding="utf-8")
    expect("text-order.ld" not in command, f"a script of GNU ld is given to another linker: {command}")
    if is_built:
        cmake_build(build)


@case("linker")
def linkers(ctx):
    """The tree in a project that chooses the linker for all its targets."""
    need("ld.gold")
    ctx.part("plain", linker, ctx, "-fuse-ld=gold", True)
    ctx.part("a generator expression", linker, ctx, "$<$<LINK_LANGUAGE:C>:-fuse-ld=gold>", False)


# ---- generators ----------------------------------------------------------------------------------------------------------------

@case("configurations")
def configurations(ctx):
    """A generator with several configurations: each is installed as it was built, whichever was built last."""
    build = ctx.dir / "build"
    cmake_configure(ctx, ROOT, build, "-G", "Ninja Multi-Config", "-DMI_BUILD_TESTS=OFF", "-DMI_BUILD_SHARED=OFF", "-DMI_BUILD_STATIC=OFF",
                    "-DCMAKE_INSTALL_LIBDIR=lib", *UNOPTIMISED)
    for name in ("Debug", "Release"):
        run("cmake", "--build", build, "--config", name)
    for name in ("Debug", "Release"):
        prefix = ctx.dir / name
        run("cmake", "--install", build, "--config", name, "--prefix", prefix)
        installed = prefix / "lib" / f"mimalloc-{ctx.version()}" / "mimalloc.o"
        built = list(build.glob(f"CMakeFiles/mimalloc-obj.dir/{name}/**/*.o"))
        expect(len(built) == 1 and installed.read_bytes() == built[0].read_bytes(), f"the object of {name} is another one")
        copy = build / name / ("mimalloc-debug.o" if name == "Debug" else "mimalloc.o")
        expect(copy.is_file() and copy.read_bytes() == built[0].read_bytes(), f"{copy} is not that of {name}")
    ctx.part("checks", configurations_checks, ctx)


def configurations_checks(ctx):
    """Debug has a name and the checks of its own, as with a generator of one configuration; others have none."""
    build = ctx.dir / "checks"
    cmake_configure(ctx, ROOT, build, "-G", "Ninja Multi-Config", "-DMI_BUILD_TESTS=OFF", "-DMI_BUILD_STATIC=OFF", "-DMI_BUILD_OBJECT=OFF",
                    *UNOPTIMISED)
    for name, library, level in (("Debug", "libmimalloc-debug.so", 2), ("Release", "libmimalloc.so", 0)):
        run("cmake", "--build", build, "--config", name)
        said = run("/bin/true", env={"LD_PRELOAD": str(build / name / library), "MIMALLOC_VERBOSE": "1"})
        expect(f"v{ctx.version()}." in said and f", {name.lower()}\n" in said and f"debug level : {level}\n" in said, said)


# ---- directories -------------------------------------------------------------------------------------------------------------

@case("directories")
def directories(ctx):
    """A build directory whose path has spaces and other characters of shells: the library is laid out as elsewhere, the demo runs."""
    layouts = []
    for name in ("plain", "a=b with spaces (and) 'more' & more"):
        build = ctx.dir / name
        cmake_configure(ctx, ROOT, build, "-DMI_BUILD_TESTS=OFF", "-DMI_BUILD_STATIC=OFF", "-DMI_BUILD_OBJECT=OFF",
                        "-DCMAKE_BUILD_TYPE=Release")
        cmake_build(build, "mimalloc", "demo")
        layouts.append(re.findall(r"^ +LOAD .*", run("readelf", "-lW", build / "libmimalloc.so"), re.M))
        for number in ("1755", "1000003"): # the second is a prime
            said = run(ROOT / "demo/run-demo.sh", "--runs", "2", build, number)
            expect("page faults" in said, said)
    expect(layouts[0] and layouts[0] == layouts[1], f"{layouts[0]} in one, {layouts[1]} in the other")


# ---- other versions of CMake -------------------------------------------------------------------------------------------------

@case("cmake-versions", long=True, timeout=1800)
def cmake_versions(ctx):
    """The oldest CMake that we say will do, and the newest that PyPI has: build, install, find_package, FetchContent."""
    for wanted in ("cmake==3.18.*", "cmake"):
        ctx.part(wanted, other_cmake, ctx, wanted)


def other_cmake(ctx, wanted):
    directory = ctx.dir / wanted.strip("=.*")
    try:
        run("python3", "-m", "venv", directory / "venv")
        run(directory / "venv/bin/pip", "install", "--quiet", wanted)
    except Failure as failure:
        raise Skip(f"{wanted} cannot be installed") from failure
    env = {"PATH": f"{directory / 'venv/bin'}:/usr/local/bin:/usr/bin:/bin"}
    print("     ", run("cmake", "--version", env=env).split("\n", maxsplit=1)[0])
    install = by_name(ctx, "versioned")
    compiler = f"-DCMAKE_C_COMPILER={ctx.cc}"
    for args in (["-S", ROOT, "-B", directory / "build", compiler, "-DMI_BUILD_TESTS=OFF"],
                 ["--build", directory / "build", "--parallel", "2"],
                 ["--install", directory / "build", "--prefix", directory / "prefix"],
                 ["-S", HERE / "find-package", "-B", directory / "client", compiler, "-DCLIENT_OBJECT=mimalloc",
                  f"-DCMAKE_PREFIX_PATH={directory / 'prefix'}", "-DCLIENT_WANTS=2.1"],
                 ["--build", directory / "client"],
                 ["-S", HERE / "sub-project", "-B", directory / "fetch", compiler, "-DCLIENT_HOW=FetchContent",
                  f"-DMIMALLOC_SOURCE={ROOT}"],
                 ["--build", directory / "fetch", "--parallel", "2"]):
        run("cmake", *args, env=env)
    for program in ("client/with-shared", "client/with-static", "client/with-object", "fetch/with-mimalloc"):
        check_client(directory / program, install.wanted(ctx))
