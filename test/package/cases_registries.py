"""Clients that come with a package manager: Conan, vcpkg, Cargo, Nim.  Some ask package registries; where those cannot be
reached the case is skipped."""

import json
import pathlib
import re
import shlex
import shutil

from harness import (ALONE, HERE, OVERRIDDEN, ROOT, Failure, Skip, case, check_client, cmake_build, cmake_configure,
                     compile_client, expect, need, run)
from installs import by_name, prefix_of

# ---- Conan -----------------------------------------------------------------------------------------------------------------

# Options of `conan create`; its test package does the checking.
CONAN = [
    [],
    ["-o", "&:shared=True", "-o", "&:override=True"],
    ["-o", "&:override=True", "-o", "&:secure=True", "-o", "&:xmalloc=True"],
    ["-o", "&:single_object=True", "-o", "&:override=True"],
    ["-s", "build_type=Debug", "-o", "&:guarded=True"],
    ["-s", "build_type=Debug", "-o", "&:shared=True"],
]


def conan_create(ctx, conan, env, options):
    output = run(conan, "create", ROOT / "packaging/conan", "--no-remote", "-c",
                 f"tools.cmake.cmake_layout:test_folder={ctx.dir / 'test'}", *options, env=env)
    expect(re.search(r"^version=\d+ header=\d+ malloc=", output, re.M), "the test package was not run")


@case("conan", long=True, timeout=1800)
def conan_all(ctx):
    """packaging/conan with Conan 2: `conan create`, and its test package."""
    conan = ctx.dir / "venv/bin/conan"
    try:
        run("python3", "-m", "venv", ctx.dir / "venv")
        run(ctx.dir / "venv/bin/pip", "install", "--quiet", "conan>=2")
    except Failure as failure:
        raise Skip("Conan cannot be installed") from failure
    env = {"CONAN_HOME": str(ctx.dir / "home"), "CC": str(ctx.cc), "CXX": str(ctx.cxx)}
    run(conan, "profile", "detect", env=env)
    for options in CONAN:
        ctx.part(f"conan create {' '.join(options)}", conan_create, ctx, conan, env, options)
    if ctx.has_level(3):
        number = ctx.numbers[3]
        ctx.part("conan create, level 3", conan_create, ctx, conan, env,
                 ["--version", f"{number // 10000}.{number // 100 % 100}.{number % 100}"])


# ---- vcpkg -----------------------------------------------------------------------------------------------------------------

# Linkage, features, name of the library, what malloc then is.
VCPKG = [
    ("static", [], "mimalloc", ALONE),
    ("dynamic", ["override"], "mimalloc", OVERRIDDEN),
    ("static", ["c", "override", "secure", "guarded", "xmalloc", "optarch", "asm"], "mimalloc-secure", OVERRIDDEN),
    ("dynamic", ["c", "nooptarch", "optarch", "optsimd"], "mimalloc", ALONE),
]


def vcpkg(ctx, linkage, features, library, printed):
    directory = ctx.dir / "vcpkg"
    shutil.rmtree(directory, ignore_errors=True)
    options = {"CURRENT_PORT_DIR": ROOT / "packaging/vcpkg/mimalloc", "CURRENT_PACKAGES_DIR": directory / "packages",
               "CURRENT_BUILDTREES_DIR": directory / "buildtrees", "VCPKG_LIBRARY_LINKAGE": linkage,
               "FEATURES": ";".join(["core", *features]), "C_COMPILER": ctx.cc, "CXX_COMPILER": ctx.cxx}
    run("cmake", *(f"-D{k}={v}" for k, v in options.items()), "-P", HERE / "vcpkg.cmake")
    installed = directory / "installed"
    (directory / "packages").rename(installed)
    part, suffix = ("shared", "so") if linkage == "dynamic" else ("static", "a")
    for file in (f"lib/lib{library}.{suffix}", f"debug/lib/lib{library}-debug.{suffix}", "share/mimalloc/mimalloc-config.cmake"):
        expect((installed / file).exists(), f"{file} is missing")
    number = ctx.numbers[2]
    wanted = {"version": number, "header": number, "mi": "ours", **printed}
    for build_type, name in (("Release", library), ("Debug", f"{library}-debug")):
        build = directory / build_type
        cmake_configure(ctx, HERE / "find-package", build, f"-DCMAKE_PREFIX_PATH={installed};{installed / 'debug'}",
                        f"-DCMAKE_BUILD_TYPE={build_type}", "-DCLIENT_CXX=ON", "-DCLIENT_OBJECT=none")
        cmake_build(build)
        check_client(build / f"with-{part}", wanted)
        link = (build / f"CMakeFiles/with-{part}.dir/link.txt").read_text(encoding="utf-8")
        expect(f"lib{name}.{suffix}" in link, f"a {build_type} program is not linked with {name}: {link}")
    usage = (installed / "share/mimalloc/usage").read_text(encoding="utf-8")
    target = "mimalloc" if linkage == "dynamic" else "mimalloc-static"
    expect(f"PRIVATE {target})" in usage, usage)
    env = {"PKG_CONFIG_LIBDIR": str(installed / "lib/pkgconfig")}
    flags = shlex.split(run("pkg-config", *(["--static"] if linkage == "static" else []), "--cflags", "--libs", "mimalloc", env=env))
    program = directory / "client"
    compile_client(ctx.cxx, program, *flags, f"-Wl,-rpath,{installed / 'lib'}")
    check_client(program, wanted)


def vcpkg_manifest(ctx):
    manifest = json.loads((ROOT / "packaging/vcpkg/mimalloc/vcpkg.json").read_text(encoding="utf-8"))
    number = ctx.numbers[2]
    expect(manifest["version"] == f"{number // 10000}.{number // 100 % 100}.{number % 100}", f"version {manifest['version']}")
    portfile = (ROOT / "packaging/vcpkg/mimalloc/portfile.cmake").read_text(encoding="utf-8")
    used = set(re.findall(r"^ +([a-z]+) +MI_\w+$", portfile, re.M))
    expect(used == set(manifest["features"]), f"features: {sorted(used ^ set(manifest['features']))}")


@case("vcpkg", long=True)
def vcpkg_all(ctx):
    """packaging/vcpkg, with functions of ours in place of vcpkg's: configures, builds, installs, and is used."""
    need("pkg-config")
    ctx.part("manifest", vcpkg_manifest, ctx)
    for linkage, features, library, printed in VCPKG:
        ctx.part(f"{linkage} {','.join(features)}", vcpkg, ctx, linkage, features, library, printed)


# ---- Cargo -----------------------------------------------------------------------------------------------------------------

def rust_crate(ctx):
    """A copy of our crate, with what it needs fetched."""
    need("cargo")
    crate = ctx.dir / "crate"
    shutil.copytree(HERE / "rust", crate)
    try:
        run("cargo", "fetch", cwd=crate)
    except Failure as failure:
        raise Skip("the crates cannot be fetched") from failure
    return crate


def rust(ctx, crate, features, *config, release=True):
    level = 2 if "v2" in features else 3
    if not ctx.has_level(level):
        raise Skip("the header has no level 3")
    run("cargo", "build", "--offline", "--features", ",".join(features), *(["--release"] if release else []), *config, cwd=crate,
        env={"MIMALLOC_SOURCE": str(ROOT), "CARGO_TARGET_DIR": str(ctx.dir / "target"), "CC": str(ctx.cc)})
    check_client(ctx.dir / "target" / ("release" if release else "debug") / "client",
                 {"version": ctx.numbers[level], "rust": "ours", "malloc": "ours" if "override" in features else "other"})


@case("rust", long=True, timeout=1800)
def rust_all(ctx):
    """A Rust program whose build script compiles src/static.c."""
    crate = rust_crate(ctx)
    for features in (["v2"], ["v3"], ["v2", "override"], ["v3", "override"], ["v2", "secure"]):
        ctx.part(",".join(features), rust, ctx, crate, features)
    ctx.part("v2, not optimised", rust, ctx, crate, ["v2"], release=False)


def place_tree(ctx, where, level):
    """Our sources where the bindings have theirs; the header takes its level from its place."""
    for directory in ("src", "include"):
        shutil.copytree(ROOT / directory, where / directory)
    header = where / "include/mimalloc.h"
    text = header.read_text(encoding="utf-8")
    if level == 3:
        text, count = re.subn(r"(# *define +MI_API_LEVEL +)2", r"\g<1>3", text)
        expect(count == 1, "the header has no default level to replace")
        header.write_text(text, encoding="utf-8")


def bindings(ctx, crate):
    """The two crates without the C sources that they bring; in their place ours."""
    metadata = json.loads(run("cargo", "metadata", "--offline", "--format-version", "1", "--all-features", cwd=crate))
    for package in metadata["packages"]:
        if package["name"] in ("mimalloc", "libmimalloc-sys"):
            source = re.sub(r"/Cargo\.toml$", "", package["manifest_path"])
            shutil.copytree(source, ctx.dir / package["name"], ignore=shutil.ignore_patterns("c_src"))
            print(f"      {package['name']} {package['version']}")
    for level in (2, 3):
        if ctx.has_level(level):
            place_tree(ctx, ctx.dir / f"libmimalloc-sys/c_src/mimalloc/v{level}", level)
    return ["--config", f"patch.crates-io.mimalloc.path='{ctx.dir / 'mimalloc'}'",
            "--config", f"patch.crates-io.libmimalloc-sys.path='{ctx.dir / 'libmimalloc-sys'}'"]


def binding_tests(ctx, name, features, config):
    """The crate's own tests."""
    if "v2" not in features and not ctx.has_level(3):
        raise Skip("the header has no level 3")
    output = run("cargo", "test", "--features", ",".join(features), *config, cwd=ctx.dir / name,
                 env={"CARGO_TARGET_DIR": str(ctx.dir / "target"), "CC": str(ctx.cc)})
    expect(re.search(r"test result: ok\. [1-9]", output), f"no test was run\n{output[-2000:]}")


def declared(text, level, pattern):
    """What matches in a file of the bindings, at this level: by the attributes in front of each."""
    found, only = [], level
    for line in text.split("\n"):
        if 'cfg(feature = "v2")' in line:
            only = 2
        elif 'cfg(not(feature = "v2"))' in line:
            only = 3
        elif match := re.search(pattern, line):
            found += [match] if only == level else []
            only = level
        elif not re.match(r" *(//|#\[|$)", line):
            only = level   # it was about something else
    return found


def binding_text(ctx):
    return "\n".join((ctx.dir / "libmimalloc-sys/src" / file).read_text(encoding="utf-8") for file in ("lib.rs", "extended.rs"))


def binding_functions(ctx, level):
    """Every function that the bindings declare is in our library."""
    if not ctx.has_level(level):
        raise Skip("the header has no level 3")
    library = ctx.dir / "all.o"
    run(ctx.cc, "-O1", "-DNDEBUG", f"-DMI_API_LEVEL={level}", f"-I{ROOT / 'include'}", "-c", ROOT / "src/static.c", "-o", library)
    ours = {line.split()[-1] for line in run("nm", "--defined-only", library).strip().split("\n")}
    names = {m[1] for m in declared(binding_text(ctx), level, r"pub fn (mi_\w+)")}
    expect(len(names) > 90, f"only {len(names)} functions were found in the bindings")
    expect(names <= ours, f"{len(names - ours)} of {len(names)} are missing: {' '.join(sorted(names - ours))}")


def binding_constants(ctx, level):
    """Every number of an option that the bindings know is that of our header."""
    if not ctx.has_level(level):
        raise Skip("the header has no level 3")
    pairs = [(m[1], m[2]) for m in declared(binding_text(ctx), level, r"pub const (_?mi_option_\w+): \w+ = (\d+);")]
    expect(len(pairs) > 10, f"only {len(pairs)} options were found in the bindings")
    source = ctx.dir / "constants.c"
    source.write_text("#include <mimalloc.h>\n" + "".join(f'_Static_assert({n} == {v}, "{n} is not {v}");\n' for n, v in pairs),
                      encoding="utf-8")
    run(ctx.cc, f"-DMI_API_LEVEL={level}", f"-I{ROOT / 'include'}", "-fsyntax-only", source)


@case("rust-bindings", long=True, timeout=1800)
def rust_bindings(ctx):
    """The crates mimalloc and libmimalloc-sys, on our sources instead of those they bring."""
    crate = rust_crate(ctx)
    config = bindings(ctx, crate)
    for features in (["v2"], ["v2", "override"], [], ["override"], ["v2", "secure"]):
        ctx.part(",".join(["bindings", *features]), rust, ctx, crate, ["bindings", *features], *config)
    for name in ("libmimalloc-sys", "mimalloc"):
        own = config[2:] if name == "mimalloc" else []
        for features in (["v2"], ["v2", "extended"], ["v2", "debug"], ["extended"], ["secure"]):
            ctx.part(f"tests of {name} {','.join(features)}", binding_tests, ctx, name, features, own)
    for level in (2, 3):
        ctx.part(f"functions of level {level}", binding_functions, ctx, level)
        ctx.part(f"options of level {level}", binding_constants, ctx, level)


# ---- Nim -------------------------------------------------------------------------------------------------------------------

NIM_FLAGS = "-DNDEBUG -DMI_BUILD_RELEASE -fvisibility=hidden -ftls-model=initial-exec -fno-builtin-malloc"


def nim(ctx, how):
    """The module of Nim that calls malloc is patched, as its users do, to call us."""
    work = ctx.dir / how
    shutil.copytree(HERE / "nim", work)
    library = re.search(r"^(/.*)/pure$", run("nim", "dump", "client.nim", cwd=work), re.M)
    expect(library, "nim does not say where its library is")
    original = (pathlib.Path(library[1]) / "system/mm/malloc.nim").read_text(encoding="utf-8")
    patched, count = re.subn(r"\bc_(malloc|calloc|realloc|free)\b", r"mi_\1", original)
    expect(count >= 4, "Nim's malloc.nim calls other functions than expected")
    if how == "static":
        include = shlex.quote(f"-I{ROOT / 'include'}")
        build = f'{{.passC: "{include} {NIM_FLAGS}".}}\n{{.compile: "{ROOT / "src/static.c"}".}}\n'
    else:
        lib = prefix_of(ctx, by_name(ctx, "alone")) / "lib"
        flags = shlex.join([f"-L{lib}", "-lmimalloc", f"-Wl,-rpath,{lib}"])
        build = f'{{.passL: "{flags}".}}\n'
    declarations = """proc mi_malloc(size: csize_t): pointer {.importc.}
proc mi_calloc(count, size: csize_t): pointer {.importc.}
proc mi_realloc(p: pointer, size: csize_t): pointer {.importc.}
proc mi_free(p: pointer) {.importc.}
"""
    (work / "patched.nim").write_text(build + declarations + patched, encoding="utf-8")
    (work / "config.nims").write_text('patchFile("stdlib", "malloc", "patched")\n', encoding="utf-8")
    run("nim", "c", "--hints:off", "--gc:orc", "-d:useMalloc", "-d:release", "--threads:on", f"--nimcache:{work / 'cache'}",
        f"--gcc.exe:{ctx.cc}", f"--gcc.linkerexe:{ctx.cc}", "client.nim", cwd=work)
    check_client(work / "client", {"version": ctx.numbers[2], "nim": "ours", "malloc": "other"})


@case("nim", long=True, installs=True)
def nim_all(ctx):
    """A Nim program whose runtime calls us."""
    need("nim")
    for how in ("static", "dynamic"):
        ctx.part(how, nim, ctx, how)
