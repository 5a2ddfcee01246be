#!/usr/bin/env python3
"""The crate in rust/, as its users get it: packed, unpacked elsewhere, built, tested, documented.

  test/rust/run.py rust            without a registry: the crate `cc` is Debian's (librust-cc-dev), or what Cargo has in its cache
  test/rust/run.py rust-registry   what asks the registry, other compilers, and all combinations of features
  test/rust/run.py PART CASE ...   these cases only

Prints a line for each case, and writes build/rust/Testing/results-PART.xml.  The exit status is 1 if a case failed.  CARGO is the
cargo that is used."""

import filecmp
import pathlib
import re
import shutil
import subprocess
import sys
import time

from harness import (CASES, CLEAN, DEBIAN, HERE, ROOT, WORK, Cargo, Failed, Skipped, call, case, expect, find_cargo, offline, passed, program,
                     test, unpacked)
from outcome import FAILED, NOT_RUN, RAN, outcome_of, write_results

# Features that belong together in one build, and the tests in which they show.
FEATURES = [("level3,extended", "raw numbers"), ("secure,background_thread", "errors global process"), ("override", "process")]
LONG_FEATURES = ["", "extended", "level3,extended", "secure,extended", "secure_full", "debug", "debug_in_debug", "guarded,no_thp", "override",
                 "background_thread", "local_dynamic_tls,override,level3", "secure,override,background_thread", "v2,win_direct_tls",
                 "xmalloc", "valgrind"]
# Tests that know what they are in for by the name of a feature know nothing of these.
LONG_TESTS = {"debug_in_debug": "heaps process", "xmalloc": "memory process"}


# ---- without a registry -----------------------------------------------------------------------------------------------------

@case("rust")
def bindings():
    """rust/src/raw is what the headers say."""
    done = subprocess.run([sys.executable, "scripts/rust-bindings.py", "--check"], cwd=ROOT, text=True, capture_output=True, check=False)
    if done.returncode == 77:
        raise Skipped(done.stdout.strip())
    expect(done.returncode == 0, done.stdout + done.stderr)


@case("rust")
def formatted():
    if shutil.which("rustfmt") is None:
        raise Skipped("rustfmt is not installed")
    sources = sorted((ROOT / "rust").glob("*.rs")) + sorted(path for kind in ("src", "tests", "examples") for path in (ROOT / "rust" / kind).rglob("*.rs"))
    call("rustfmt", "--check", "--edition", "2021", "--config-path", ROOT / "rust", *sources)
    return f"{len(sources)} files"


@case("rust")
def package():
    """The package has the C sources, all of them, and no links."""
    crate = unpacked()
    links = [path for path in crate.rglob("*") if path.is_symlink()]
    expect(not links, f"links: {links}")
    compared = 0
    for directory, pattern in (("src", "*.[ch]"), ("include", "*.h")):
        for path in (ROOT / directory).rglob(pattern):
            copy = crate / "c" / directory / path.relative_to(ROOT / directory)
            expect(copy.exists() and filecmp.cmp(path, copy, shallow=False), f"{copy} is not what {path} is")
            compared += 1
    expect(compared > 200, f"only {compared} C sources")
    expect(filecmp.cmp(crate / "LICENSE", ROOT / "LICENSE", shallow=False), "the license is another one")
    manifest = (crate / "Cargo.toml").read_text(encoding="utf-8")
    expect('rust-version = "1.63"' in manifest, "the package does not say which compiler it needs")
    return f"{compared} C sources"


@case("rust")
def tests():
    """All tests, examples and examples in the documentation."""
    return passed(offline()("test", "--no-fail-fast", "--features", "extended", cwd=unpacked(), timeout=1800), 65)


@case("rust")
def examples():
    said = {"global": r"mimalloc 2\d{4}: .*\"the\": 3", "requests": r"1000 answers.*\n[1-9]\d+ bytes in [1-9]\d* blocks for 10",
            "statistics": r"100000 texts: 1000\d\d blocks, [1-9]\d{6} bytes(.|\n)*JSON: [1-9]\d{3,} bytes", "raw": r"the sum is 499500"}
    expect({path.stem for path in (unpacked() / "examples").glob("*.rs")} == set(said), "an example is not run")
    for name, pattern in said.items():
        output = offline()("run", "--quiet", "--features", "extended", "--example", name, cwd=unpacked())
        expect(re.search(pattern, output), f"{name} says {output}")
    return ", ".join(said)


@case("rust")
def documentation():
    """No warnings, with all features of stable compilers and with none; and nothing without documentation."""
    for features in ("extended", ""):
        offline()("doc", "--no-deps", "--features", features, cwd=unpacked(), env={"RUSTDOCFLAGS": "-D warnings"})


@case("rust")
def clippy():
    cargo = offline()
    try:
        cargo("clippy", "--version", cwd=unpacked())
    except Failed as why:
        raise Skipped("clippy is not installed") from why
    cargo("clippy", "--all-targets", "--features", "extended", "--", "-D", "warnings",
          "-A", "clippy::needless-collect", cwd=unpacked())  # old versions want to start threads one after the other's end
    return f"of Rust {cargo.version[0]}.{cargo.version[1]}"


@case("rust")
def features():
    return "; ".join(f"{some}: {test(offline(), some, names, 2)}" for some, names in FEATURES)


@case("rust")
def refused_features():
    """Two levels at once are refused, with the reason."""
    try:
        offline()("check", "--features", "level3,v2", cwd=unpacked())
    except Failed as why:
        expect("exclude each other" in str(why), str(why))
        return
    raise Failed("level3 and v2 were built together")


@case("rust")
def missing_sources():
    """A package without its C sources says what is missing."""
    copy = WORK / "crate" / "damaged"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(unpacked(), copy, ignore=shutil.ignore_patterns("c"))
    try:
        offline()("check", cwd=copy)
    except Failed as why:
        expect("the C sources are missing" in str(why), str(why))
        return
    finally:
        shutil.rmtree(copy)
    raise Failed("it was built without C sources")


@case("rust")
def in_place_of_mimalloc():
    """A program that says `mimalloc::MiMalloc` changes its Cargo.toml alone."""
    where = program("in-place", '[dependencies]\nmimalloc = { package = "mimalloc-compat", path = "CRATE", default-features = false }\n', """
#[global_allocator]
static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;
fn main() {
    let text = vec![String::from("text"); 1000];
    println!("{}", mimalloc::is_block(text[999].as_ptr()));
}
""")
    expect(offline()("run", "--quiet", cwd=where).strip().endswith("true"), "it was not served")


@case("rust")
def without_the_standard_library():
    """A program with neither std nor a crate that needs it, only libc to start it."""
    where = program("no-std", '[dependencies]\nmimalloc-compat = { path = "CRATE" }\n[profile.release]\npanic = "abort"\nlto = true\n',
                    (HERE / "no_std.rs").read_text(encoding="utf-8"))
    offline()("build", "--release", cwd=where)
    done = subprocess.run([str(offline().target / "release/no-std")], check=False, timeout=60)
    expect(done.returncode == 42, f"exit status {done.returncode}")


# ---- with a registry, or other compilers ------------------------------------------------------------------------------------

def online():
    """A cargo that can ask the registry."""
    command = find_cargo()
    if not command:
        raise Skipped("there is no cargo")
    cargo = Cargo(command, "online")
    if cargo.version < (1, 68):
        raise Skipped(f"Cargo of Rust {cargo.version[0]}.{cargo.version[1]} would copy the whole index of the registry")
    return cargo


@case("rust-registry")
def vendor():
    """`cargo vendor` and then a build without a network."""
    where = program("vendor", '[dependencies]\nmimalloc-compat = { path = "CRATE" }\n',
                    "#[global_allocator]\nstatic G: mimalloc_compat::MiMalloc = mimalloc_compat::MiMalloc;\n"
                    'fn main() { println!("{}", mimalloc_compat::is_block(vec![1].as_ptr())); }\n')
    cargo = online()
    try:
        cargo("vendor", cwd=where, online=True)
    except Failed as why:
        raise Skipped("the registry does not answer") from why
    alone = Cargo(find_cargo(), "vendored", where / "vendor")
    expect(alone("run", "--quiet", cwd=where).strip().endswith("true"), "it was not served")
    return f"{len(list((where / 'vendor').iterdir()))} crates"


@case("rust-registry")
def two_crates_that_define_mimalloc():
    """Cargo refuses a program that has the crate `mimalloc` as well, in a version of the last years."""
    where = program("two", '[dependencies]\nmimalloc-compat = { path = "CRATE" }\nmimalloc = "0.1.40"\n', "fn main() {}\n")
    try:
        online()("generate-lockfile", cwd=where, online=True)
    except Failed as why:
        if "native library `mimalloc`" in str(why) or 'links = "mimalloc"' in str(why):
            return
        raise Skipped("the registry does not answer") from why
    raise Failed("both crates were accepted")


@case("rust-registry")
def all_features():
    said = []
    for some in LONG_FEATURES:
        said.append(test(offline(), some, LONG_TESTS.get(some, ""), 10))
        print(f"      {some or 'none'}: {said[-1]}", flush=True)
    return f"{len(said)} combinations"


MISTAKE = """
#[global_allocator]
static GLOBAL: mimalloc_compat::MiMalloc = mimalloc_compat::MiMalloc;
fn main() {
    let block = Box::into_raw(Box::new([1u64; 10]));
    let is_wrong = std::env::args().count() > 1;
    if is_wrong {
        unsafe { drop(Box::from_raw(block)) };
    }
    println!("{}", unsafe { std::ptr::read_volatile(block.cast::<u64>()) });
    if !is_wrong {
        unsafe { drop(Box::from_raw(block)) };
    }
}
"""


@case("rust-registry")
def valgrind():
    """Feature valgrind: Valgrind finds a use after free, and nothing in a correct program."""
    if shutil.which("valgrind") is None or not pathlib.Path("/usr/include/valgrind/memcheck.h").exists():
        raise Skipped("valgrind is not installed")
    where = program("valgrind", '[dependencies]\nmimalloc-compat = { path = "CRATE", features = ["valgrind"] }\n', MISTAKE)
    offline()("build", cwd=where)
    built = str(offline().target / "debug/valgrind")
    call("valgrind", "--quiet", "--error-exitcode=9", built, timeout=300)
    done = subprocess.run(["valgrind", "--error-exitcode=9", built, "wrong"], text=True, capture_output=True, timeout=300, check=False)
    expect(done.returncode == 9 and "Invalid read of size 8" in done.stderr and "free'd" in done.stderr, done.stderr[-2000:])


@case("rust-registry")
def allocator_api():
    """Feature allocator_api, with a compiler that takes unstable features."""
    cargo = offline()
    if cargo.version < (1, 85):
        raise Skipped(f"Rust {cargo.version[0]}.{cargo.version[1]} has another form of the trait Allocator")
    return passed(cargo("test", "--features", "allocator_api", "--test", "allocator_api", cwd=unpacked(), env={"RUSTC_BOOTSTRAP": "1"}), 4)


@case("rust-registry")
def debian():
    """Debian's own compiler and crate `cc`, if another one was used above."""
    if not any(DEBIAN.glob("cc-*")) or not pathlib.Path("/usr/bin/cargo").exists():
        raise Skipped("Debian's packages cargo and librust-cc-dev are not installed")
    cargo = Cargo("/usr/bin/cargo", "debian", DEBIAN)
    cargo.env["PATH"] = f"/usr/bin:{CLEAN['PATH']}"
    said = passed(cargo("test", "--no-fail-fast", "--features", "extended", cwd=unpacked(), timeout=1800), 65)
    return f"Rust {cargo.version[0]}.{cargo.version[1]}: {said}"


@case("rust-registry")
def windows():
    """The tests on Windows, under wine, with Debian's compiler and library of Rust for it: newer ones want more than wine 8 has."""
    if not pathlib.Path("/usr/lib/rustlib/x86_64-pc-windows-gnu").exists() or shutil.which("wine") is None:
        raise Skipped("libstd-rust-dev-windows or wine is not installed")
    cargo = Cargo("/usr/bin/cargo", "windows", DEBIAN)
    cargo.env["PATH"] = f"/usr/bin:{CLEAN['PATH']}"
    # A panic prints a backtrace, for which wine's dbghelp.dll reads the program's debug information, and crashes over it.
    settings = {"CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER": "wine", "WINEDEBUG": "-all", "WINEPREFIX": str(WORK / "wine"),
                "CARGO_PROFILE_TEST_STRIP": "debuginfo"}
    return passed(cargo("test", "--no-fail-fast", "--target", "x86_64-pc-windows-gnu", "--tests", "--features", "extended", cwd=unpacked(),
                        env=settings, timeout=1800), 50)


def other_crates(name):
    """A case of the package tests, which has the crates that others have made for mimalloc."""
    done = subprocess.run([sys.executable, "test/package/run.py", name], cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False)
    print("".join(f"      {line}\n" for line in done.stdout.splitlines() if line[:4] in ("ok  ", "skip", "FAIL", "    ")), end="", flush=True)
    if done.returncode == 77:
        raise Skipped(done.stdout.strip().splitlines()[-1])
    expect(done.returncode == 0, done.stdout[-4000:])
    return f"{len(re.findall('^ok', done.stdout, re.M))} parts"


@case("rust-registry")
def build_script():
    """A program whose own build script compiles src/static.c (test/package)."""
    return other_crates("rust")


@case("rust-registry")
def crates_of_mimalloc():
    """The crates mimalloc and libmimalloc-sys with our sources in place of theirs, and their own tests (test/package)."""
    return other_crates("rust-bindings")


def main():
    part, *names = sys.argv[1:] or ["rust"]
    unknown = [name for name in names if name not in CASES[part]]
    if unknown:
        sys.exit(f"run.py: no such case: {', '.join(unknown)}; there are: {', '.join(CASES[part])}")
    outcomes = []
    for name, function in CASES[part].items():
        if not names or name in names:
            start = time.monotonic()
            status, said = outcome_of(function)
            outcomes.append((f"{part}-{name}", status, said, time.monotonic() - start))
            print(f"{({RAN: 'ok', FAILED: 'FAIL', NOT_RUN: 'skip'})[status]:<5} {name} ({outcomes[-1][3]:.0f} s) {said}", flush=True)
    write_results(WORK / "Testing" / f"results-{part}.xml", part, outcomes)
    return 1 if any(outcome[1] == FAILED for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
