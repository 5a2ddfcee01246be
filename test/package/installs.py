"""What is built and installed for the tests: each build once, in as many layouts as tests look at.

Every tree is moved away from where it was installed, and its build is deleted, before anybody uses it."""

import dataclasses
import re
import shutil

from harness import ALONE, OVERRIDDEN, ROOT, UNOPTIMISED, case, cmake_build, cmake_configure, expect, run

# Builds, by their options.
BUILDS = {
    "release": [],
    "level3": ["-DMI_API_LEVEL=3"],
    "alone": ["-DMI_OVERRIDE=OFF"],
    "cxx": ["-DMI_USE_CXX=ON"],
    "debug": ["-DCMAKE_BUILD_TYPE=Debug"],
    "secure": ["-DMI_SECURE=ON"],
    "secure-debug": ["-DMI_SECURE=ON", "-DCMAKE_BUILD_TYPE=Debug"],
}


@dataclasses.dataclass(frozen=True)
class Install:
    name: str
    build: str = "release"
    toplevel: bool = False
    libdir: str = "lib"
    parts: tuple = ("shared", "static", "object")

    level = property(lambda self: 3 if self.build == "level3" else 2)
    override = property(lambda self: self.build != "alone")

    @property
    def library(self):
        """The name without prefix and suffix."""
        return "mimalloc" + "".join(f"-{word}" for word in self.build.split("-") if word in ("secure", "debug"))

    def options(self):
        def switch(on):
            return "ON" if on else "OFF"
        return [f"-DMI_INSTALL_TOPLEVEL={switch(self.toplevel)}", f"-DCMAKE_INSTALL_LIBDIR={self.libdir}",
                *(f"-DMI_BUILD_{p.upper()}={switch(p in self.parts)}" for p in ("shared", "static", "object"))]

    def wanted(self, ctx):
        """What a client prints that uses it."""
        number = ctx.numbers[self.level]
        return {"version": number, "header": number, "mi": "ours", **(OVERRIDDEN if self.override else ALONE)}

    # -- where things are, from the prefix
    def versioned(self, ctx, directory):
        return directory if self.toplevel else f"{directory}/mimalloc-{ctx.version(self.level)}"

    def objectdir(self, ctx):
        return self.versioned(ctx, self.libdir)

    def includedir(self, ctx):
        return self.versioned(ctx, "include")

    def cmakedir(self, ctx):
        return f"{self.libdir}/cmake/mimalloc" + ("" if self.toplevel else f"-{ctx.version(self.level)}")

    def docdir(self, ctx):
        return "share/doc/mimalloc" + ("" if self.toplevel else f"-{ctx.version(self.level)}")

    def files(self, ctx):
        """All files, and no others."""
        lib, version = f"{self.libdir}/lib{self.library}", ctx.version(self.level)
        found = {f"{self.libdir}/pkgconfig/mimalloc.pc", f"{self.docdir(ctx)}/LICENSE"}
        headers = {"mimalloc.h", "mimalloc-override.h", "mimalloc-new-delete.h", "mimalloc-stats.h"}
        headers |= {h.name for h in (ROOT / "include").glob("*.h")}
        found |= {f"{self.includedir(ctx)}/{h}" for h in headers}
        found |= {f"{self.cmakedir(ctx)}/{f}" for f in ("mimalloc-config.cmake", "mimalloc-config-version.cmake")}
        if "shared" in self.parts:
            found |= {f"{lib}.so", f"{lib}.so.{self.level}", f"{lib}.so.{version}"}
        if "static" in self.parts:
            found |= {f"{self.objectdir(ctx)}/lib{self.library}.a"}
        if "object" in self.parts:
            found |= {f"{self.objectdir(ctx)}/{self.library}.o"}
        if set(self.parts) - {"object"}:
            config = "debug" if self.library.endswith("-debug") else "release"
            found |= {f"{self.cmakedir(ctx)}/{f}" for f in ("mimalloc.cmake", f"mimalloc-{config}.cmake")}
        return found


MULTIARCH = "lib/x86_64-linux-gnu"

INSTALLS = [
    Install("versioned"),
    Install("toplevel", toplevel=True),
    Install("multiarch", libdir=MULTIARCH),
    Install("multiarch-toplevel", libdir=MULTIARCH, toplevel=True),
    Install("only-shared", parts=("shared",)),
    Install("only-static", parts=("static",)),
    Install("only-object", parts=("object",)),
    Install("level3", build="level3"),
    Install("level3-toplevel", build="level3", toplevel=True),
    Install("alone", build="alone"),
    Install("cxx", build="cxx"),
    Install("debug", build="debug"),
    Install("secure", build="secure"),
    Install("secure-debug", build="secure-debug"),
]


def prefix_of(ctx, install):
    return ctx.shared_work / "installed" / install.name


def installs(ctx, *names):
    """The installs of these names, or all, that this header can have."""
    return [i for i in INSTALLS if (not names or i.name in names) and ctx.has_level(i.level)]


def by_name(ctx, name):
    return installs(ctx, name)[0]


# ---- making them -----------------------------------------------------------------------------------------------------------

def make(ctx, install, build):
    cmake_configure(ctx, ROOT, build, "-DMI_BUILD_TESTS=OFF", "-DCMAKE_BUILD_TYPE=Release", *UNOPTIMISED,
                    *BUILDS[install.build], *install.options())
    cmake_build(build)
    first = ctx.dir / "first"
    run("cmake", "--install", build, "--prefix", first)
    prefix = prefix_of(ctx, install)
    prefix.parent.mkdir(exist_ok=True)
    first.rename(prefix)   # nothing may remember where it was installed
    found = {str(p.relative_to(prefix)) for p in prefix.rglob("*") if not p.is_dir()}
    wanted = install.files(ctx)
    expect(found == wanted, f"missing: {sorted(wanted - found)}; not wanted: {sorted(found - wanted)}")
    if "shared" in install.parts:
        check_shared(ctx, install, prefix)


def check_shared(ctx, install, prefix):
    """Its links, its soname, what it needs and what it exports."""
    so, version = f"lib{install.library}.so", ctx.version(install.level)
    library = prefix / install.libdir / so
    for link, target in ((so, f"{so}.{install.level}"), (f"{so}.{install.level}", f"{so}.{version}")):
        expect((prefix / install.libdir / link).readlink().name == target, f"{link} is no link to {target}")
    dynamic = run("readelf", "-d", library)
    expect(f"[{so}.{install.level}]" in dynamic, f"wrong soname\n{dynamic}")
    runtime = "|libstdc|libgcc_s|libm" if install.build == "cxx" else ""
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
    strange = [n for n in needed if not re.match(rf"(libc|ld-linux|libpthread|ld-musl{runtime})\b.*", n)]
    expect(not strange, f"needs more than libc: {strange}")
    symbols = {line.split()[-1] for line in run("nm", "-D", "--defined-only", library).strip().split("\n")}
    internal = sorted(s for s in symbols if s.startswith("_mi_") and not s.startswith("_mi_option_last"))
    expect(not internal, f"exports internal names: {internal}")
    expect(("malloc" in symbols) == install.override, "malloc is exported" if "malloc" in symbols else "no malloc is exported")


@case("install")
def install_all(ctx):
    """Builds everything, installs it, and looks at names, links and symbols."""
    shutil.rmtree(ctx.shared_work / "installed", ignore_errors=True)
    for build in BUILDS:
        directory = ctx.dir / f"build-{build}"
        for install in installs(ctx):
            if install.build == build:
                ctx.part(install.name, make, ctx, install, directory)
        shutil.rmtree(directory, ignore_errors=True)
