"""The source archive of a release, and the version that everything about it must agree on."""

import json
import os
import pathlib
import re
import tarfile
import tempfile

from harness import (ALONE, OVERRIDDEN, ROOT, UNOPTIMISED, Failure, case, check_client, cmake_build, cmake_configure,
                     compile_client, expect, need, run)


def full_version(ctx, level=2):
    number = ctx.numbers[level]
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def changelog_versions():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    return re.findall(r"^## \[?(\d+\.\d+\.\d+)\]?", text, re.M)


@case("release-version", timeout=60)
def release_version(ctx):
    """The header, CHANGELOG.md, the vcpkg port, the Debian package and the Nim package name the same version; the documents the same level."""
    version = full_version(ctx)
    level = ctx.version()
    expect(changelog_versions()[:1] == [version], f"CHANGELOG.md begins with {changelog_versions()[:1]}; the header says {version}")
    port = json.loads((ROOT / "packaging/vcpkg/mimalloc/vcpkg.json").read_text(encoding="utf-8"))
    expect(port["version"] == version, f"vcpkg.json has {port['version']}; the header says {version}")
    nimble = (ROOT / "mimalloc.nimble").read_text(encoding="utf-8")
    expect(re.search(rf'^version *= "{re.escape(version)}"$', nimble, re.M), f"mimalloc.nimble has another version than {version}")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    expect(f"find_package(mimalloc {level} " in readme, f"README.md asks find_package for another version than {level}")
    packaging = (ROOT / "docs/design/packaging.md").read_text(encoding="utf-8")
    expect(f"libmimalloc.so.{level}" in packaging, f"docs/design/packaging.md has no libmimalloc.so.{level}")
    recipe = (ROOT / "packaging/conan/conanfile.py").read_text(encoding="utf-8")
    level3 = full_version(ctx, 3)
    expect(f"--version {level3}" in recipe, f"conanfile.py shows another version of level 3 than {level3}")
    debian = (ROOT / "packaging/debian/changelog").read_text(encoding="utf-8")
    expect(debian.startswith(f"mimalloc-compact ({version}-"), f"packaging/debian/changelog begins with another version than {version}")


def unpack(archive, directory, version):
    """The root of the unpacked tree.  All members are below one directory: plain files, and links to what is there."""
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            target = os.path.normpath(os.path.join(os.path.dirname(member.name), member.linkname))
            expect(member.isfile() or (member.issym() and target.startswith(f"mimalloc-{version}/")), f"{member.name} is no plain file")
            expect(member.name.startswith(f"mimalloc-{version}/") and ".." not in member.name, f"{member.name} is elsewhere")
        tar.extractall(directory)
    return directory / f"mimalloc-{version}"


def smoke_test(ctx, tree, work):
    """Build, install, link and preload; then one of the tree's own tests."""
    number = ctx.numbers[2]
    wanted = {"version": number, "header": number, "mi": "ours", **OVERRIDDEN}
    build, prefix = work / "build", work / "prefix"
    cmake_configure(ctx, tree, build, "-DCMAKE_BUILD_TYPE=Release", "-DMI_BUILD_TESTS=ON", "-DMI_INSTALL_TOPLEVEL=ON",
                    "-DCMAKE_INSTALL_LIBDIR=lib", f"-DCMAKE_INSTALL_PREFIX={prefix}", *UNOPTIMISED)
    cmake_build(build, "mimalloc", "mimalloc-static", "mimalloc-obj-target", "test-api-basic-shared")
    run("cmake", "--install", build)
    run(build / "test/test-api-basic-shared")
    program = work / "client"
    compile_client(ctx.cc, program, f"-I{prefix}/include", f"-L{prefix}/lib", "-lmimalloc", f"-Wl,-rpath,{prefix}/lib")
    check_client(program, wanted)
    compile_client(ctx.cc, program, f"-I{prefix}/include", f"{prefix}/lib/mimalloc.o", "-pthread")
    check_client(program, wanted)
    compile_client(ctx.cc, program, "-DCLIENT_PLAIN")
    check_client(program, ALONE)
    check_client(program, OVERRIDDEN, env={"LD_PRELOAD": str(prefix / "lib/libmimalloc.so")})


@case("archive")
def archive(ctx):
    """`make dist`: the archive builds, installs and serves programs, in a directory with nothing else, and makes itself again."""
    need("tar", "gzip")
    version = full_version(ctx)
    first = pathlib.Path(run(ROOT / "scripts/dist.sh", "--any", ctx.dir / "first").strip())
    expect(first.name == f"mimalloc-{version}.tar.gz", f"the archive is called {first.name}")
    with tempfile.TemporaryDirectory(prefix="mimalloc-archive-") as work:   # not below a checkout
        work = pathlib.Path(work)
        tree = unpack(first, work, version)
        for name in ("README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "Makefile", "CMakeLists.txt"):
            expect((tree / name).is_file(), f"{name} is not in the archive")
        expect(not (tree / "build").exists() and not (tree / ".git").exists(), "there is a build or a repository in the archive")
        second = pathlib.Path(run(tree / "scripts/dist.sh", work / "second").strip())
        with tarfile.open(first) as a, tarfile.open(second) as b:
            expect(a.getnames() == b.getnames(), "the archive made from the archive has other files")
        smoke_test(ctx, tree, work)


def make_archive(ctx, out, *options, env=None):
    return pathlib.Path(run(ROOT / "scripts/dist.sh", "--any", *options, out, env=env).strip().split("\n")[-1])


@case("release-signed")
def release_signed(ctx):
    """The archive made twice has the same bytes; its checksum and its signature hold, and a changed byte breaks both."""
    need("tar", "gzip", "gpg", "sha256sum")
    with tempfile.TemporaryDirectory(prefix="mi-gpg-") as home:   # short: gpg's agent has a socket there
        env = {"GNUPGHOME": home}
        run("gpg", "--batch", "--passphrase", "", "--quick-generate-key", "Test of mimalloc <test@example.org>", "ed25519", "sign", "never", env=env)
        first = make_archive(ctx, ctx.dir / "first", "--sign", "test@example.org", env=env)
        second = make_archive(ctx, ctx.dir / "second")
        expect(first.read_bytes() == second.read_bytes(), "made twice, the archive has different bytes")
        signature, checksum = f"{first}.asc", f"{first}.sha256"
        run("gpg", "--verify", signature, first, env=env)
        run("sha256sum", "--check", checksum, cwd=first.parent)
        changed = bytearray(first.read_bytes())
        changed[len(changed) // 2] ^= 1
        first.write_bytes(changed)
        for what, command in (("the signature", ["gpg", "--verify", signature, first]), ("the checksum", ["sha256sum", "--check", checksum])):
            try:
                run(*command, env=env, cwd=first.parent)
            except Failure:
                continue
            raise Failure(f"{what} does not notice a changed byte")
        run("gpgconf", "--kill", "all", env=env)
