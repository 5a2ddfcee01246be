"""Every CMake option: what the compiler is then told, what the library is then called, or what is said about it."""

import json
import re

from harness import (OVERRIDDEN, ROOT, UNOPTIMISED, Failure, Skip, case, check_client, cmake_build, cmake_configure,
                     compile_client, compilers, expect, run)

SHARED, STATIC, OBJECT = "mimalloc", "mimalloc-static", "mimalloc-obj"

# Settings; then any of
#   has, hasnot   words of the compiler's command line, of all targets
#   in_TARGET     ... of this target only
#   name          of the library
#   says, fails   a pattern for what CMake says, and says as an error
#   targets       those that there are
OPTIONS = [
    ("", dict(name="mimalloc", targets=[SHARED, STATIC, OBJECT],
              has="-O2 -DNDEBUG -std=gnu11 -fPIC -fvisibility=hidden -fno-builtin-malloc -DMI_MALLOC_OVERRIDE -DMI_BUILD_RELEASE "
                  "-DMI_LIBRARY_BUILD=1 -DMI_CMAKE_BUILD_TYPE=release -ftls-model=initial-exec",
              hasnot="-DMI_SECURE.* -DMI_PADDING.* -DMI_GUARDED.* -DMI_DEBUG.* -DMI_XMALLOC.* -DMI_TRACK_VALGRIND.* "
                     "-DMI_API_LEVEL.* -march=.* -fsanitize.*")),
    ("", {"in_mimalloc": "-DMI_SHARED_LIB -DMI_SHARED_LIB_EXPORT", "in_mimalloc-static": "-DMI_STATIC_LIB"}),
    ("MI_SECURE=ON", dict(has="-DMI_SECURE=4", name="mimalloc-secure")),
    ("MI_SECURE_FULL=ON", dict(has="-DMI_SECURE=5", name="mimalloc-secure")),
    ("MI_SECURE=ON MI_SECURE_FULL=ON", dict(has="-DMI_SECURE=5", hasnot="-DMI_SECURE=4")),
    ("MI_SECURE=ON CMAKE_BUILD_TYPE=Debug", dict(has="-DMI_SECURE=4 -DMI_DEBUG=2", name="mimalloc-secure-debug")),
    ("MI_PADDING=ON", dict(has="-DMI_PADDING=1")),
    ("MI_NO_PADDING=ON", dict(has="-DMI_PADDING=0")),
    ("MI_PADDING=ON MI_NO_PADDING=ON", dict(has="-DMI_PADDING=0", hasnot="-DMI_PADDING=1")),
    ("MI_OVERRIDE=OFF", dict(hasnot="-DMI_MALLOC_OVERRIDE")),
    ("MI_XMALLOC=ON", dict(has="-DMI_XMALLOC=1")),
    ("MI_SHOW_ERRORS=ON", dict(has="-DMI_SHOW_ERRORS=1")),
    ("MI_GUARDED=ON", dict(has="-DMI_GUARDED=1")),
    ("MI_MIN_ALIGN_8=ON", dict(has="-DMI_MIN_ALIGN_8=1")),
    ("MI_NO_THP=ON", dict(has="-DMI_DEFAULT_ALLOW_THP=0")),
    ("MI_EXTRA_CPPDEFS=A=1;B=2", dict(has="-DA=1 -DB=2")),

    ("MI_USE_CXX=ON", dict(has="-std=gnu++17", hasnot="-std=gnu11")),
    ("MI_USE_CXX=ON MI_NO_USE_CXX=ON", dict(has="-std=gnu11")),
    ("MI_OPT_ARCH=ON CMAKE_SYSTEM_PROCESSOR=x86_64", dict(has="-march=haswell")),
    ("MI_OPT_ARCH=ON MI_NO_OPT_ARCH=ON", dict(hasnot="-march=.*")),
    ("MI_OPT_ARCH=ON CMAKE_BUILD_TYPE=Debug", dict(hasnot="-march=.*", says="MI_OPT_ARCH is for optimised builds")),
    ("MI_SEE_ASM=ON", dict(has="-save-temps=obj")),
    ("MI_LOCAL_DYNAMIC_TLS=ON", dict(has="-ftls-model=local-dynamic", hasnot="-ftls-model=initial-exec")),
    ("MI_LIBC_MUSL=ON", {"has": "-DMI_LIBC_MUSL=1", "in_mimalloc": "-ftls-model=initial-exec",
                         "in_mimalloc-static": "-ftls-model=local-dynamic"}),

    ("MI_DEBUG=ON", dict(has="-DMI_DEBUG=1", name="mimalloc")),
    ("MI_DEBUG_INTERNAL=ON", dict(has="-DMI_DEBUG=2")),
    ("MI_DEBUG_FULL=ON", dict(has="-DMI_DEBUG=3")),
    ("MI_CHECK_FULL=ON", dict(has="-DMI_DEBUG=3", says="(?s)Deprecat.*is called MI_DEBUG_FULL")),
    ("CMAKE_BUILD_TYPE=Debug", dict(has="-DMI_DEBUG=2", hasnot="-DNDEBUG -DMI_BUILD_RELEASE", name="mimalloc-debug")),
    ("CMAKE_BUILD_TYPE=Debug MI_NO_DEBUG=ON", dict(has="-DMI_DEBUG=0", hasnot="-DMI_DEBUG=2", name="mimalloc-debug")),
    ("CMAKE_BUILD_TYPE=RelWithDebInfo", dict(has="-DMI_BUILD_RELEASE", name="mimalloc")),
    ("CMAKE_BUILD_TYPE=MinSizeRel", dict(has="-Os -DMI_BUILD_RELEASE", name="mimalloc")),
    ("CMAKE_BUILD_TYPE=None", dict(has="-DMI_BUILD_RELEASE", name="mimalloc")),
    ("MI_DEBUG_TSAN=ON", dict(has="-fsanitize=thread", says="MI_OVERRIDE is switched off")),
    ("MI_DEBUG_TSAN=ON MI_TRACK_ASAN=ON", dict(fails="MI_DEBUG_TSAN cannot be had with\\s+MI_TRACK_ASAN")),
    ("MI_DEBUG_UBSAN=ON", dict(has="-fsanitize=undefined")),
    ("MI_TRACK_ASAN=ON", dict(has="-fsanitize=address -DMI_TRACK_ASAN=1", hasnot="-DMI_MALLOC_OVERRIDE", name="mimalloc-asan")),

    ("MI_TRACK_VALGRIND=ON mi_has_memcheck=1", dict(has="-DMI_TRACK_VALGRIND=1", name="mimalloc-valgrind")),
    ("MI_TRACK_VALGRIND=ON MI_SECURE=ON CMAKE_BUILD_TYPE=Debug mi_has_memcheck=1", dict(name="mimalloc-secure-valgrind-debug")),
    ("MI_TRACK_VALGRIND=ON mi_has_memcheck=", dict(fails="Debian\\s+package\\s+valgrind")),
    ("mi_has_sdt=1", dict(has="-DMI_TRACK_USDT=1")),
    ("mi_has_sdt=", dict(hasnot="-DMI_TRACK_USDT.*")),
    ("MI_TRACK_USDT=OFF mi_has_sdt=1", dict(hasnot="-DMI_TRACK_USDT.*")),
    ("MI_TRACK_USDT=ON mi_has_sdt=1", dict(has="-DMI_TRACK_USDT=1")),
    ("MI_TRACK_USDT=ON mi_has_sdt=", dict(fails="Debian\\s+package\\s+systemtap-sdt-dev")),

    ("MI_BUILD_SHARED=OFF", dict(targets=[STATIC, OBJECT])),
    ("MI_BUILD_STATIC=OFF", dict(targets=[SHARED, OBJECT])),
    ("MI_BUILD_OBJECT=OFF", dict(targets=[SHARED, STATIC])),
    ("MI_API_LEVEL=2", dict(hasnot="-DMI_API_LEVEL.*")),
    ("MI_API_LEVEL=3", dict(has="-DMI_API_LEVEL=3", level=3)),
    ("MI_API_LEVEL=4", dict(fails="MI_API_LEVEL is 4")),

    ("MI_TLS_MODEL_PTHREADS=ON", dict(has="-DMI_LOCAL_BY_KEY=1")),

    # for other systems, or deprecated: taken, with a word about it
    *((f"{name}=ON", dict(says=f"{name} is for Windows")) for name in (
        "MI_WIN_USE_FIXED_TLS", "MI_WIN_DIRECT_TLS", "MI_WIN_INIT_USE_RAW_DLLMAIN", "MI_WIN_INIT_USE_TLS_DLLMAIN",
        "MI_WIN_USE_FLS", "MI_TRACK_ETW")),
    ("MI_WIN_REDIRECT=OFF", dict(says="MI_WIN_REDIRECT is for Windows")),
    ("MI_OSX_INTERPOSE=OFF", dict(says="MI_OSX_INTERPOSE is for macOS")),
    ("MI_OSX_ZONE=OFF", dict(says="MI_OSX_ZONE is for macOS")),
    ("MI_SKIP_COLLECT_ON_EXIT=ON", dict(says="MI_SKIP_COLLECT_ON_EXIT is always on")),
    ("MI_FREE_IS_CHECKED=ON", dict(says="MI_FREE_IS_CHECKED is always on")),
    ("MI_TLS_MODEL_LOCAL=ON", dict(says="MI_TLS_MODEL_LOCAL is always on")),
    ("MI_TLS_RECURSE_GUARD=ON", dict(says="MI_TLS_RECURSE_GUARD has no effect")),
    ("MI_OPT_SIMD=ON", dict(says="MI_OPT_SIMD has no effect")),
    ("MI_USE_LIBATOMIC=ON", dict(says="MI_USE_LIBATOMIC has no effect")),
]


def commands(build):
    """The words of the compiler's command lines, by target."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        target = re.search(r" -o CMakeFiles/(mimalloc[^/ ]*)\.dir/", entry["command"])
        if target:
            found[target[1]] = entry["command"].split()
    return found


def check_words(target, words, has, hasnot):
    for pattern in has:
        expect(any(re.fullmatch(re.escape(pattern), w) for w in words), f"{target}: no {pattern} in {' '.join(words)}")
    for pattern in hasnot:
        found = [w for w in words if re.fullmatch(pattern, w)]
        expect(not found, f"{target}: {found}")


def option(ctx, settings, wanted):
    if wanted.get("level", 2) not in ctx.numbers:
        raise Skip("the header has no level 3")
    build = ctx.dir / "build"
    settings = [f"-D{s}" for s in settings.split()]
    # all in one build directory, so that compilers are looked at once
    always = ("-UMI_*", "-Umi_has_memcheck", "-Umi_has_sdt", "-DMI_BUILD_TESTS=OFF", "-DCMAKE_BUILD_TYPE=Release",
              "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON")
    try:
        said = cmake_configure(ctx, ROOT, build, *always, *settings)
    except Failure as failure:
        expect("fails" in wanted and re.search(wanted["fails"], str(failure)), str(failure))
        return
    expect("fails" not in wanted, "this must be refused")
    if "says" in wanted:
        expect(re.search(wanted["says"], said), f"nothing is said about it:\n{said}")
    found = commands(build)
    if "targets" in wanted:
        expect(set(found) == set(wanted["targets"]), f"targets: {sorted(found)}")
    for target, words in found.items():
        check_words(target, words, wanted.get("has", "").split(), wanted.get("hasnot", "").split())
        check_words(target, words, wanted.get(f"in_{target}", "").split(), ())
    if "name" in wanted:
        name = re.search(r"^Libs:.* -l(\S+)", (build / "mimalloc.pc").read_text(encoding="utf-8"), re.M)[1]
        expect(name == wanted["name"], f"the library is called {name}")


@case("options")
def options_all(ctx):
    """What each option does."""
    for settings, wanted in OPTIONS:
        ctx.part(settings or "defaults", option, ctx, settings, wanted)


def directory(ctx, name, options, build_type, secure):
    build = ctx.dir / name
    cmake_configure(ctx, ROOT, build, "-DMI_BUILD_TESTS=OFF", *options)
    cache = dict(re.findall(r"^(\w+):\w+=(.*)$", (build / "CMakeCache.txt").read_text(encoding="utf-8"), re.M))
    expect(cache["CMAKE_BUILD_TYPE"] == build_type, f"build type {cache['CMAKE_BUILD_TYPE']}")
    expect(cache["MI_SECURE"] == secure, f"MI_SECURE is {cache['MI_SECURE']}")


@case("directory-names")
def directory_names(ctx):
    """The name of the build directory decides what nobody has said."""
    for name, options, build_type, secure in (
            ("any", [], "Release", "OFF"), ("my-debug", [], "Debug", "OFF"), ("Debug", [], "Debug", "OFF"),
            ("out-asan", [], "Debug", "OFF"), ("out-valgrind", [], "Debug", "OFF"), ("debug-secure", [], "Release", "ON"),
            ("Secure", ["-DMI_SECURE=OFF"], "Release", "OFF"), ("a-debug", ["-DCMAKE_BUILD_TYPE=Release"], "Release", "OFF")):
        ctx.part(f"{name} {' '.join(options)}", directory, ctx, name, options, build_type, secure)


@case("emulated-tls")
def emulated_tls(ctx):
    """The library where the compiler is told to emulate thread-local variables, which then allocate."""
    clang = next((c for c in compilers() if "clang" in c), None)
    if clang is None:
        raise Skip("clang is not installed")
    build, program = ctx.dir / "build", ctx.dir / "client"
    said = run("cmake", "-S", ROOT, "-B", build, f"-DCMAKE_C_COMPILER={clang}", "-DCMAKE_C_FLAGS=-femulated-tls", "-DMI_BUILD_TESTS=OFF",
               "-DMI_BUILD_STATIC=OFF", "-DMI_BUILD_OBJECT=OFF", *UNOPTIMISED)
    expect("MI_TLS_MODEL_PTHREADS is switched on" in said, said)
    cmake_build(build)
    compile_client(clang, program, "-DCLIENT_PLAIN", "-femulated-tls")
    check_client(program, {"version": ctx.numbers[2], **OVERRIDDEN}, env={"LD_PRELOAD": str(build / "libmimalloc.so")})
