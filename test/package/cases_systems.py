"""Packages of systems: Debian's, and an image for containers.  Both need root, a network, and minutes."""

import os
import pathlib
import re
import shutil
import tempfile

from harness import ROOT, Failure, Skip, case, expect, need, run

# ---- Debian ----------------------------------------------------------------------------------------------------------------

# Of the packages' own: no version of them is in Debian, so that they close no bug.
LINTIAN_ALLOWED = {"initial-upload-closes-no-bugs"}


def debian_lint(out):
    need("lintian")
    changes = next(out.glob("*.changes"))
    output = run("lintian", "--allow-root", "--fail-on", "none", changes)
    found = set(re.findall(r"^[EW]: \S+?(?: source)?: (\S+)", output, re.M))
    expect(found <= LINTIAN_ALLOWED, output)


def debian_names(out):
    """No file has the name of one in Debian's own packages of mimalloc, nor could have in a later version of them."""
    for package in out.glob("libmimalloc-compact*.deb"):
        for line in run("dpkg-deb", "--contents", package).splitlines():
            path = line.split()[5]
            if "mimalloc" in pathlib.PurePosixPath(path).name and "/mimalloc-compact-" not in path:
                expect("mimalloc-compact" in path, f"{package.name} has {path}")


def debian_installed(ctx, out):
    """In a layer over the file system, which then vanishes: installed together with Debian's own packages, tested, removed."""
    if os.geteuid() != 0:
        raise Skip("only root can install packages")
    need("unshare", "chroot", "apt-get")
    script = ctx.dir / "install.sh"
    script.write_text(f"""set -eu
top=$(mktemp -d)
mount -t tmpfs tmpfs "$top"
mkdir "$top/upper" "$top/work" "$top/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$top/upper,workdir=$top/work" "$top/root" || exit 77
mount -t proc proc "$top/root/proc"
mount --rbind /dev "$top/root/dev"
mount -t tmpfs tmpfs "$top/root/tmp"
mkdir "$top/root/tmp/packages"
cp {out}/libmimalloc-compact2_*.deb {out}/libmimalloc-compact-dev_*.deb "$top/root/tmp/packages"
cp {ROOT}/packaging/debian/tests/smoke "$top/root/tmp"
cat > "$top/root/tmp/inside" <<'END'
set -eu
export DEBIAN_FRONTEND=noninteractive
{{ apt-get update -q && apt-get install -y -q --no-install-recommends libmimalloc-dev; }} > /tmp/log 2>&1 || echo "without Debian's own"
dpkg --install /tmp/packages/*.deb
/tmp/smoke
dpkg --purge libmimalloc-compact-dev libmimalloc-compact2
! find /usr/lib /usr/include /usr/share/doc -name '*mimalloc-compact*' | grep .
END
chroot "$top/root" sh /tmp/inside
""", encoding="utf-8")
    try:
        output = run("unshare", "--mount", "sh", script)
    except Failure as failure:
        if "exit status 77" in str(failure):
            raise Skip("no layer over the file system can be mounted") from failure
        raise
    expect(output.count("ok    ") >= 6, output)
    print("\n".join(line for line in output.splitlines() if line.startswith(("ok", "without"))))


@case("debian", long=True, timeout=1800)
def debian(ctx):
    """packaging/debian: built, checked by lintian, installed beside Debian's own mimalloc, and used."""
    need("dpkg-buildpackage", "dh")
    with tempfile.TemporaryDirectory(prefix="mimalloc-debian-") as out:   # not below a checkout
        out = pathlib.Path(out)
        run(ROOT / "packaging/debian/build.sh", "--any", out, timeout=1500)
        ctx.part("names", debian_names, out)
        ctx.part("lintian", debian_lint, out)
        ctx.part("installed", debian_installed, ctx, out)


# ---- container image -------------------------------------------------------------------------------------------------------

def buildah(store, *command, timeout=900):
    return run("buildah", "--storage-driver", "vfs", "--root", store / "root", "--runroot", store / "run", *command, timeout=timeout)


@case("container", long=True, timeout=1800)
def container(ctx):
    """packaging/container: the image is built over a Debian that is made for it, and its programs use the library."""
    need("buildah", "mmdebstrap")
    if os.geteuid() != 0:
        raise Skip("only root can make a base image here")
    with tempfile.TemporaryDirectory(prefix="mimalloc-container-") as store:
        store = pathlib.Path(store)
        try:
            run("mmdebstrap", "--quiet", "--variant=apt", "bookworm", store / "base.tar")
        except Failure as failure:
            raise Skip("no Debian can be fetched") from failure
        try:
            base = buildah(store, "from", "scratch").split()[-1]
            buildah(store, "add", "--quiet", base, store / "base.tar", "/")
            buildah(store, "commit", "--quiet", base, "localhost/base")
        except Failure as failure:
            raise Skip(f"buildah does not work here: {failure}") from failure
        buildah(store, "bud", "--isolation", "chroot", "--pull-never", "--build-arg", "BASE=localhost/base", "--tag", "localhost/mimalloc",
                "--file", ROOT / "packaging/container/Containerfile", ROOT)
        image = buildah(store, "from", "localhost/mimalloc").split()[-1]
        command = "MIMALLOC_VERBOSE=1 /bin/true 2>&1; if command -v gcc; then echo a compiler; fi"
        output = buildah(store, "run", "--isolation", "chroot", image, "sh", "-c", command)
        expect(re.search(r"^mimalloc: v\d", output, re.M), f"a program of the image does not use the library\n{output}")
        expect("a compiler" not in output, "the image has the tools that built the library")
        buildah(store, "rm", "--all")
        shutil.rmtree(store / "root", ignore_errors=True)
