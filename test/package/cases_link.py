"""Clients that call the compiler: with pkg-config, with plain flags, from the single source, under link-time optimisation;
and programs that are not built for it at all."""

import shlex
import shutil

from harness import (ALONE, HERE, OVERRIDDEN, ROOT, Skip, case, check_client, client_source, cmake_build, compile_client,
                     compilers, cxx_of, expect, need, run)
from installs import by_name, installs, prefix_of

CXX = {"new": "ours"}   # what a C++ client prints besides


def needs_library(program, install):
    return f"[lib{install.library}.so.{install.level}]" in run("readelf", "-d", program)


# ---- pkg-config ------------------------------------------------------------------------------------------------------------

def pkg_config(ctx, install):
    prefix = prefix_of(ctx, install)
    env = {"PKG_CONFIG_LIBDIR": str(prefix / install.libdir / "pkgconfig")}
    libraries = {"LD_LIBRARY_PATH": str(prefix / install.libdir)}

    def flags(*options):
        return shlex.split(run("pkg-config", *options, "--cflags", "--libs", "mimalloc", env=env))

    version = run("pkg-config", "--modversion", "mimalloc", env=env).strip()
    expect(version == ctx.version(install.level), f"version {version}")
    program = ctx.dir / f"{install.name}-client"
    compile_client(ctx.cc, program, *flags())
    check_client(program, install.wanted(ctx), env=libraries)
    expect(needs_library(program, install) == ("shared" in install.parts), "not linked with what was asked for")
    if "static" in install.parts:
        compile_client(ctx.cc, program, "-static", *flags("--static"))
        check_client(program, install.wanted(ctx))


def pkg_config_lto(ctx, install):
    """A program that does not name the library and is optimised as a whole: GCC names malloc when the static library was read."""
    prefix = prefix_of(ctx, install)
    env = {"PKG_CONFIG_LIBDIR": str(prefix / install.libdir / "pkgconfig")}
    flags = shlex.split(run("pkg-config", "--static", "--cflags", "--libs", "mimalloc", env=env))
    program = ctx.dir / "lto-client"
    run(ctx.cc, "-O1", "-flto", "-static", *WEAK, client_source(), *flags, "-o", program, "-ldl")
    check_client(program, {"version": ctx.numbers[install.level], **OVERRIDDEN})


def pkg_config_in_system_directory(ctx, install):
    """Of a directory that the linker searches anyway pkg-config says nothing; then too the shared library is linked."""
    prefix = prefix_of(ctx, install)
    libdir = str(prefix / install.libdir)
    env = {"PKG_CONFIG_LIBDIR": f"{libdir}/pkgconfig",
           "PKG_CONFIG_SYSTEM_LIBRARY_PATH": f"{libdir}:{libdir}/pkgconfig/" + "/".join([".."] * libdir_depth(install)) +
                                             f"/{install.libdir}"}
    flags = shlex.split(run("pkg-config", "--cflags", "--libs", "mimalloc", env=env))
    expect(not any(f.startswith("-L") for f in flags), f"the directory is still there: {flags}")
    program = ctx.dir / "system-client"
    compile_client(ctx.cc, program, *flags, "-Wl,-rpath-link," + libdir, f"-B{libdir}")
    expect(needs_library(program, install), "the static library was linked")


def libdir_depth(install):
    return len(install.libdir.split("/")) + 1


@case("pkg-config", installs=True)
def pkg_config_all(ctx):
    """In each layout, shared and static."""
    need("pkg-config")
    for install in installs(ctx):
        ctx.part(install.name, pkg_config, ctx, install)
    for name in ("versioned", "only-static"):
        ctx.part(f"{name}, -flto", pkg_config_lto, ctx, by_name(ctx, name))
    for name in ("versioned", "toplevel", "multiarch"):
        ctx.part(f"{name} in a system directory", pkg_config_in_system_directory, ctx, by_name(ctx, name))


# ---- plain flags -------------------------------------------------------------------------------------------------------------

# Name, install, compilers, flags, what is printed besides the install's own; {lib}, {obj}, {inc}: directories.
# CLIENT is where the program's source stands among them.
SHARED = ("-L{lib}", "-lmimalloc", "-Wl,-rpath,{lib}")
PLAIN  = "-DCLIENT_PLAIN"
WEAK   = ("-DCLIENT_PLAIN", "-DCLIENT_WEAK")
HIDDEN = ("-fvisibility=hidden", "-fvisibility-inlines-hidden")
LINKS = [
    ("shared",                   "versioned", "C C++", ("-I{inc}", *SHARED)),
    ("shared, as needed",        "versioned", "C C++", ("-Wl,--as-needed", "CLIENT", PLAIN, *SHARED)),
    ("shared, no PIE",           "versioned", "C",     ("-no-pie", "-fno-pie", "-I{inc}", *SHARED)),
    ("shared, hidden",           "versioned", "C C++", (*HIDDEN, "-I{inc}", *SHARED)),
    ("shared, level 3",          "level3",    "C C++", ("-I{inc}", *SHARED)),
    ("shared, secure",           "secure",    "C",     ("-I{inc}", "-L{lib}", "-lmimalloc-secure", "-Wl,-rpath,{lib}")),
    ("shared, debug",            "debug",     "C",     ("-I{inc}", "-L{lib}", "-lmimalloc-debug", "-Wl,-rpath,{lib}")),
    ("shared, without override", "alone",     "C",     ("-I{inc}", *SHARED)),
    ("static",                   "versioned", "C C++", ("-I{inc}", "{obj}/libmimalloc.a")),
    ("static, toplevel",         "toplevel",  "C",     ("-I{inc}", "-L{lib}", "-Wl,-Bstatic", "-lmimalloc", "-Wl,-Bdynamic")),
    ("static, hidden",           "versioned", "C C++", (*HIDDEN, "-I{inc}", "{obj}/libmimalloc.a")),
    ("static, unmentioned",      "versioned", "C C++", (*WEAK, "CLIENT", "{obj}/libmimalloc.a")),
    ("static, -static",          "toplevel",  "C C++", ("-static", "-I{inc}", "-L{lib}", "-lmimalloc")),
    ("static, unmentioned, -static", "toplevel", "C C++", ("-static", *WEAK, "CLIENT", "-L{lib}", "-lmimalloc")),
    ("static, -static-pie",      "toplevel",  "C",     ("-static-pie", "-fPIE", "-I{inc}", "-L{lib}", "-lmimalloc")),
    ("static, exports listed",   "versioned", "C C++", ("-rdynamic", "-Wl,--version-script={here}/exports.map", "-I{inc}",
                                                        "{obj}/libmimalloc.a")),
    ("static, level 3",          "level3",    "C",     ("-I{inc}", "{obj}/libmimalloc.a")),
    ("static, without override", "alone",     "C",     ("-I{inc}", "{obj}/libmimalloc.a")),
    ("static, in C++",           "cxx",       "C++",   ("-I{inc}", "{obj}/libmimalloc.a")),
    ("object first",             "versioned", "C C++", (*WEAK, "{obj}/mimalloc.o", "CLIENT")),
    ("object last",              "versioned", "C C++", (*WEAK, "CLIENT", "{obj}/mimalloc.o")),
    ("object, hidden",           "versioned", "C C++", (*HIDDEN, "-I{inc}", "{obj}/mimalloc.o", "CLIENT")),
    ("object, -static",          "versioned", "C C++", ("-static", *WEAK, "{obj}/mimalloc.o", "CLIENT")),
    ("object, level 3",          "level3",    "C",     ("-I{inc}", "{obj}/mimalloc.o", "CLIENT")),
    ("object, secure",           "secure",    "C",     ("-I{inc}", "{obj}/mimalloc-secure.o", "CLIENT")),
    ("object, secure and debug", "secure-debug", "C",  ("-I{inc}", "{obj}/mimalloc-secure-debug.o", "CLIENT")),
]


def link(ctx, install, compiler, flags):
    prefix = prefix_of(ctx, install)
    places = {"lib": prefix / install.libdir, "obj": prefix / install.objectdir(ctx), "inc": prefix / install.includedir(ctx),
              "here": HERE}
    wanted = install.wanted(ctx)
    if PLAIN in flags:
        wanted = {**wanted, "header": 0}
        del wanted["mi"]
    if "++" in compiler:
        wanted.update(CXX)
    program = ctx.dir / "client"
    compile_client(compiler, program, *(f.format(**places) for f in flags))
    check_client(program, wanted)


@case("compiler", installs=True)
def compiler_all(ctx):
    """Programs linked by plain flags, and whether malloc, operator new and the C library are served by us."""
    for cc in compilers():
        for name, install, languages, flags in LINKS:
            for language in languages.split():
                compiler = cc if language == "C" else cxx_of(cc)
                for found in installs(ctx, install):
                    ctx.part(f"{compiler}: {name}", link, ctx, found, compiler, flags)


# ---- preloaded -----------------------------------------------------------------------------------------------------------------

def preload(ctx, install, compiler):
    library = prefix_of(ctx, install) / install.libdir / f"lib{install.library}.so"
    program = ctx.dir / "client"
    compile_client(compiler, program, PLAIN)
    wanted = {"version": ctx.numbers[install.level], **OVERRIDDEN, **(CXX if "++" in compiler else {})}
    check_client(program, wanted, env={"LD_PRELOAD": str(library)})
    check_client(program, {"version": 0, **ALONE})   # the check can tell


PYTHON = """
import ctypes
is_ours = ctypes.CDLL(None).mi_is_in_heap_region
is_ours.restype, is_ours.argtypes = ctypes.c_bool, [ctypes.c_void_p]
objects = [str(n) * 5 for n in range(100000)]
assert all(is_ours(id(o)) for o in objects[::100]), "an object of Python is not ours"
print("ok")
"""


def preload_python(ctx, install):
    library = prefix_of(ctx, install) / install.libdir / f"lib{install.library}.so"
    output = run("/usr/bin/env", "python3", "-c", PYTHON, env={"LD_PRELOAD": str(library), "PYTHONMALLOC": "malloc"})
    expect(output.strip() == "ok", output)


@case("preload-installed", installs=True)
def preload_all(ctx):
    """LD_PRELOAD of the installed libraries, under programs that know nothing of it."""
    for install in installs(ctx, "versioned", "level3", "cxx", "debug", "secure", "secure-debug"):
        for compiler in (ctx.cc, ctx.cxx):
            ctx.part(f"{install.name}: {compiler}", preload, ctx, install, compiler)
        ctx.part(f"{install.name}: python3", preload_python, ctx, install)


# ---- single source ---------------------------------------------------------------------------------------------------------------

OVERRIDE = ("-DMI_MALLOC_OVERRIDE", "-fno-builtin-malloc")
SOURCE_FLAGS = [
    (),
    ("-DNDEBUG",),
    ("-DNDEBUG", "-DMI_BUILD_RELEASE", *OVERRIDE),
    ("-DMI_DEBUG=3", *OVERRIDE),
    ("-DNDEBUG", "-DMI_API_LEVEL=3", *OVERRIDE),
]
# As distributions compile; also in a static program, where a part of the library runs before there is thread-local storage.
HARDENED = ("-DNDEBUG", *OVERRIDE, "-fstack-protector-all", "-D_FORTIFY_SOURCE=2", "-fPIE")
SOURCE_FLAGS_LONG = [
    *((f"-DMI_DEBUG={n}",) for n in (0, 1, 2)), *(("-DNDEBUG", f"-DMI_STAT={n}") for n in (0, 1, 2)),
    *(("-DNDEBUG", f) for f in (
        "-DMI_SECURE=4", "-DMI_SECURE=5", "-DMI_PADDING=0", "-DMI_PADDING=1", "-DMI_GUARDED=1", "-DMI_XMALLOC=1",
        "-DMI_SHOW_ERRORS=1", "-DMI_NO_THP=1", "-DMI_DEFAULT_ALLOW_THP=0", "-DMI_MIN_ALIGN_8=1", "-DMI_LIBC_MUSL=1",
        "-DMI_OSX_ZONE=1", "-DMI_OSX_INTERPOSE=1", "-DMI_WIN_DIRECT_TLS=1", "-DMI_SKIP_COLLECT_ON_EXIT=1",
        "-ftls-model=initial-exec", "-ftls-model=local-dynamic", "-fvisibility=hidden", "-fshort-enums", "-O0", "-O3", "-Os")),
    ("-DNDEBUG", "-DMI_SECURE=4", "-DMI_API_LEVEL=3", *OVERRIDE),
]


def single_source(ctx, compiler, flags, language=()):
    level = 3 if "-DMI_API_LEVEL=3" in flags else 2
    if not ctx.has_level(level):
        raise Skip("the header has no level 3")
    include, thing, program = f"-I{ROOT / 'include'}", ctx.dir / "single.o", ctx.dir / "client"
    thing.unlink(missing_ok=True)
    # Without optimisation it compiles in a fraction of the time; the release set has the warnings that need it.
    optimise = "-O1" if "-DMI_BUILD_RELEASE" in flags else "-O0"
    run(compiler, *language, optimise, "-Wall", "-Wextra", "-Werror", include, *flags, "-c", ROOT / "src/static.c", "-o", thing)
    compile_client(compiler, program, include, *(f for f in flags if "API_LEVEL" in f), thing, "-pthread")
    number = ctx.numbers[level]
    overridden = "-DMI_MALLOC_OVERRIDE" in flags
    wanted = {"version": number, "header": number, "mi": "ours", **(OVERRIDDEN if overridden else ALONE)}
    check_client(program, wanted)


def hardened(ctx, compiler):
    thing, program = ctx.dir / "hardened.o", ctx.dir / "client"
    include = f"-I{ROOT / 'include'}"
    run(compiler, "-O2", include, *HARDENED, "-c", ROOT / "src/static.c", "-o", thing)
    for link in ("-static", "-pie"):
        compile_client(compiler, program, include, link, thing, "-pthread")
        check_client(program, {"version": ctx.numbers[2], "mi": "ours"})


PLUGIN = """
#include <mimalloc.h>
int plugin_work(void);
int plugin_work(void) {
  void* p = mi_malloc(100);
  mi_free(p);
  return p == 0;
}
"""
OPENER = """
#include <dlfcn.h>
int main(int argc, char** argv) {
  void* plugin = dlopen(argv[argc - 1], RTLD_NOW);
  void* work = plugin == 0 ? 0 : dlsym(plugin, "plugin_work");
  return work == 0 ? 1 : ((int (*)(void))work)();
}
"""
# Thread-local variables as compilers have them in a library by default, and in the other ways.
PLUGIN_FLAGS = [(), ("-ftls-model=initial-exec",), ("-DMI_NO_IFUNC=1", "-ftls-model=local-dynamic")]


def plugin(ctx, compiler, flags):
    thing, archive, library, program = (ctx.dir / name for name in ("part.o", "libpart.a", "plugin.so", "opener"))
    (ctx.dir / "plugin.c").write_text(PLUGIN)
    (ctx.dir / "opener.c").write_text(OPENER)
    archive.unlink(missing_ok=True)
    run(compiler, "-O0", "-fPIC", "-DNDEBUG", f"-I{ROOT / 'include'}", *flags, "-c", ROOT / "src/static.c", "-o", thing)
    run("ar", "rc", archive, thing)
    run(compiler, "-shared", "-fPIC", f"-I{ROOT / 'include'}", ctx.dir / "plugin.c", archive, "-Wl,--exclude-libs,ALL", "-pthread", "-o", library)
    run(compiler, ctx.dir / "opener.c", "-o", program, "-ldl")
    run(program, library)


def single_sources(ctx, sets, cxx_sets):
    for cc in compilers():
        for compiler, language, its_sets in ((cc, (), sets), (cxx_of(cc), ("-x", "c++", "-std=gnu++17"), cxx_sets),
                                             (cxx_of(cc), ("-x", "c++", "-std=c++11", "-fno-exceptions", "-fno-rtti"), cxx_sets[:1])):
            for flags in its_sets:
                ctx.part(f"{compiler} {' '.join(flags)}", single_source, ctx, compiler, flags, language)


@case("single-source")
def single_source_all(ctx):
    """src/static.c alone, as C and as C++, in programs and in a plug-in."""
    single_sources(ctx, SOURCE_FLAGS, SOURCE_FLAGS[2:4])
    for compiler in compilers():
        ctx.part(f"{compiler}, stack protector", hardened, ctx, compiler)
        for flags in PLUGIN_FLAGS:
            ctx.part(f"{compiler}, plug-in {' '.join(flags)}", plugin, ctx, compiler, flags)


@case("single-source-flags", long=True, timeout=1800)
def single_source_flags(ctx):
    """src/static.c with every definition that clients are known to use."""
    single_sources(ctx, SOURCE_FLAGS_LONG, SOURCE_FLAGS[:2] + SOURCE_FLAGS[4:] + SOURCE_FLAGS_LONG)


@case("instrumented")
def instrumented(ctx):
    """src/static.c with code that the compiler adds to each function, also to those that run before the process is set up."""
    for compiler in compilers():
        flags = ["-finstrument-functions"] + (["-fsanitize=safe-stack"] if "clang" in compiler else [])
        for flag in flags:
            program = ctx.dir / f"{compiler}{flag}"
            compile_client(compiler, program, "-O1", flag, f"-I{ROOT / 'include'}", *OVERRIDE, ROOT / "src/static.c", "-pthread")
            check_client(program, {"version": ctx.numbers[2], "mi": "ours", **OVERRIDDEN})
        # Sanitizers keep the malloc of their own: they call it before code that they have changed can run.
        program, flag = ctx.dir / f"{compiler}-sanitized", f"-fsanitize={'memory' if 'clang' in compiler else 'address'}"
        compile_client(compiler, program, "-O0", flag, f"-I{ROOT / 'include'}", *OVERRIDE, ROOT / "src/static.c", "-pthread")
        check_client(program, {"version": ctx.numbers[2], "mi": "ours", **ALONE})


# ---- control-flow integrity -------------------------------------------------------------------------------------------------------

@case("cfi")
def cfi(ctx):
    """Library and program under clang's control-flow integrity, which ends a program at a call that it does not know."""
    clang = next((c for c in compilers() if "clang" in c), None)
    if clang is None:
        raise Skip("clang is not installed")
    need(f"ld.lld{clang.removeprefix('clang')}")
    flags = ("-O2", "-flto", "-fsanitize=cfi", "-fvisibility=hidden", f"-I{ROOT / 'include'}")
    thing, program = ctx.dir / "cfi.o", ctx.dir / "client"
    run(clang, *flags, "-DNDEBUG", *OVERRIDE, "-c", ROOT / "src/static.c", "-o", thing)
    compile_client(clang, program, *flags, "-fuse-ld=lld", thing, "-pthread")
    check_client(program, {"version": ctx.numbers[2], "mi": "ours", **OVERRIDDEN})
    # The shared library calls the pthread_create of libc and the functions of the program's threads.
    library, source, threads = ctx.dir / "libcfi.so", ctx.dir / "threads.c", ctx.dir / "threads"
    run(clang, *flags, "-DNDEBUG", *OVERRIDE, "-DMI_SHARED_LIB", "-DMI_SHARED_LIB_EXPORT", "-fPIC", "-shared",
        "-ftls-model=initial-exec", "-fuse-ld=lld", ROOT / "src/static.c", "-o", library)
    source.write_text(THREADS, encoding="utf-8")
    run(clang, source, "-o", threads, "-pthread")
    run(threads, env={"LD_PRELOAD": str(library)})


THREADS = """
#include <pthread.h>
static void* run(void* arg) { return arg; }
int main(void) {
  pthread_t thread;
  return pthread_create(&thread, NULL, &run, NULL) != 0 || pthread_join(thread, NULL) != 0;
}
"""


# ---- link-time optimisation ------------------------------------------------------------------------------------------------------

def lto_build(ctx, cc, flags, linker):
    build = ctx.dir / "build"
    shutil.rmtree(build, ignore_errors=True)
    run("cmake", "-S", ROOT, "-B", build, f"-DCMAKE_C_COMPILER={cc}", "-DMI_BUILD_TESTS=OFF", "-DCMAKE_BUILD_TYPE=Release",
        f"-DCMAKE_C_FLAGS={flags}", f"-DCMAKE_SHARED_LINKER_FLAGS={linker}", f"-DCMAKE_EXE_LINKER_FLAGS={linker}",
        "-DCMAKE_AR=" + shutil.which(cc.replace("clang", "llvm-ar") if "clang" in cc else "gcc-ar"))
    cmake_build(build)
    return build


def lto_link(ctx, compiler, flags, *things):
    program = ctx.dir / "client"
    number = ctx.numbers[2]
    compile_client(compiler, program, "-O2", f"-I{ROOT / 'include'}", *flags, *things)
    wanted = {"version": number, "header": number, "mi": "ours", **OVERRIDDEN, **(CXX if "++" in compiler else {})}
    check_client(program, wanted)


def lto(ctx, cc, flags, linker=""):
    build = lto_build(ctx, cc, flags, linker)
    for compiler in (cc, cxx_of(cc)):
        for name, things in (("static library", ("CLIENT", build / "libmimalloc.a")),
                             ("static library, -static", ("-static", "CLIENT", build / "libmimalloc.a")),
                             ("object", (build / "mimalloc.o", "CLIENT")),
                             ("shared library", ("CLIENT", f"-L{build}", "-lmimalloc", f"-Wl,-rpath,{build}"))):
            ctx.part(f"{compiler} {flags}: {name}", lto_link, ctx, compiler, [flags, *linker.split()], *things)


@case("lto-gcc")
def lto_gcc(ctx):
    """Library and program optimised together by gcc."""
    need("gcc", "gcc-ar")
    lto(ctx, "gcc", "-flto")


@case("lto-clang")
def lto_clang(ctx):
    """Library and program optimised together by clang and lld."""
    clang = next((c for c in compilers() if "clang" in c), None)
    if clang is None:
        raise Skip("clang is not installed")
    suffix = clang.removeprefix("clang")
    need(f"ld.lld{suffix}", f"llvm-ar{suffix}")
    for flags in ("-flto", "-flto=thin"):
        ctx.part(f"{clang} {flags}", lto, ctx, clang, flags, "-fuse-ld=lld")
