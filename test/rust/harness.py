"""What the tests of the crate in rust/ share: cargo, the crate as it is packed, programs that use it, results."""

import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "test"))
from outcome import Failed, Skipped, expect  # noqa: E402

WORK = ROOT / "build/rust"
NAME = "mimalloc-compat"
DEBIAN = pathlib.Path("/usr/share/cargo/registry")
JOBS = os.environ.get("CARGO_BUILD_JOBS", str(os.cpu_count()))
# A crate must find what it is told to find, and nothing else.
CLEAN = {name: value for name, value in os.environ.items()
         if not name.startswith(("MIMALLOC_", "CARGO_", "RUSTFLAGS", "RUSTDOC")) and name not in ("CFLAGS", "LD_PRELOAD")}


class Cargo:
    """One cargo, with a home and a target directory of its own, and without a network unless it is asked for one."""

    def __init__(self, command, name, source=None):
        self.command, self.target = command, WORK / f"target-{name}"
        self.env = {**CLEAN, "CARGO_TARGET_DIR": str(self.target), "CARGO_BUILD_JOBS": JOBS}
        if source:
            home = WORK / f"home-{name}"
            home.mkdir(parents=True, exist_ok=True)
            (home / "config.toml").write_text('[source.crates-io]\nreplace-with = "offline"\n'
                                              f'[source.offline]\ndirectory = "{source}"\n', encoding="utf-8")
            self.env["CARGO_HOME"] = str(home)

    def __call__(self, *arguments, cwd, env=None, online=False, timeout=900):
        return call(self.command, *arguments[:1], *([] if online or arguments[0] == "fmt" else ["--offline"]), *arguments[1:], cwd=cwd,
                    env={**self.env, **(env or {})}, timeout=timeout)

    @property
    @functools.lru_cache(maxsize=None)
    def version(self):
        """Of the compiler: (1, 63)."""
        text = call(rustc_of(self.command), "--version", env=self.env)
        return tuple(int(n) for n in re.match(r"rustc (\d+)\.(\d+)", text).groups())


def rustc_of(cargo):
    beside = pathlib.Path(shutil.which(cargo) or cargo).parent / "rustc"
    return str(beside) if beside.exists() else "rustc"


def call(*command, cwd=ROOT, env=None, timeout=900):
    """The output; raises Failed when the command fails."""
    command = [str(word) for word in command]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
                              errors="replace", check=False, cwd=cwd, env=env or CLEAN, timeout=timeout)
    except subprocess.TimeoutExpired as error:
        raise Failed(f"{' '.join(command)}\nstill running after {timeout} s") from error
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}\nexit status {done.returncode}\n{done.stdout[-4000:]}")
    return done.stdout


CASES = {"rust": {}, "rust-registry": {}}


def case(part):
    def register(function):
        CASES[part][function.__name__.replace("_", "-")] = function
        return function
    return register


# ---- the cargo and the crate ----------------------------------------------------------------------------------------------

def find_cargo():
    return os.environ.get("CARGO") or shutil.which("cargo") or ""


@functools.lru_cache(maxsize=None)
def offline():
    """A cargo that has the crate `cc` without a network."""
    command = find_cargo()
    if not command:
        raise Skipped("there is no cargo")
    if any(DEBIAN.glob("cc-*")):
        return Cargo(command, "offline", DEBIAN)
    return Cargo(command, "cached")


@functools.lru_cache(maxsize=None)
def unpacked():
    """The crate as `cargo package` makes it, unpacked where nothing of the tree is around it."""
    cargo = offline()
    here = WORK / "crate"
    shutil.rmtree(here, ignore_errors=True)
    shutil.copytree(ROOT / "rust", here / "rust", symlinks=True, ignore=shutil.ignore_patterns("target", "Cargo.lock"))
    for directory in ("src", "include"):
        shutil.copytree(ROOT / directory, here / directory)
    shutil.copy(ROOT / "LICENSE", here)
    try:
        cargo("package", "--no-verify", "--allow-dirty", cwd=here / "rust")
    except Failed as why:
        if "no matching package" in str(why):
            raise Skipped("the crate `cc` is neither in Debian's registry nor in Cargo's cache") from why
        raise
    archive, = (cargo.target / "package").glob(f"{NAME}-*.crate")
    call("tar", "xzmf", archive, "-C", here)  # -m: files in a package have one date, by which Cargo would not see changes
    shutil.rmtree(here / "rust")
    for directory in ("src", "include"):
        shutil.rmtree(here / directory)
    (here / "LICENSE").unlink()
    return next(here.glob(f"{NAME}-*"))


def passed(output, least):
    """All results of `cargo test` are good, and this many tests ran at least."""
    counts = [int(n) for n in re.findall(r"test result: ok\. (\d+) passed", output)]
    expect("FAILED" not in output and sum(counts) >= least, f"{sum(counts)} tests passed, {least} expected\n{output[-3000:]}")
    return f"{sum(counts)} tests"


def test(cargo, features, names, least):
    tests = [word for name in names.split() for word in ("--test", name)] or ["--tests"]
    return passed(cargo("test", "--no-fail-fast", *tests, "--features", features, cwd=unpacked()), least)


def program(name, manifest, main):
    """A program that uses the crate."""
    where = WORK / "programs" / name
    shutil.rmtree(where, ignore_errors=True)
    (where / "src").mkdir(parents=True)
    (where / "Cargo.toml").write_text(f'[package]\nname = "{name}"\nversion = "0.0.0"\nedition = "2021"\n[workspace]\n'
                                      + manifest.replace("CRATE", str(unpacked())), encoding="utf-8")
    (where / "src/main.rs").write_text(main, encoding="utf-8")
    return where
