#!/usr/bin/env python3
"""Has a model checker prove the functions proof_... of this directory, each for all inputs that it allows (proof.h).

  run.py               the quick ones: all but those named ..._long
  run.py --all         all of them (minutes)
  run.py --seeded      each proof once more with a fault in the sources (SEEDED): it must fail then
  run.py --install     before that, ESBMC is installed from PyPI into build/venv-proof if there is no model checker
  run.py bits.align    these only
  run.py --self-test   what this script decides, without a model checker

The model checker is CBMC or ESBMC, whichever is on the PATH.  The one of PyPI is that of the package ethcheck.  Without any the
exit status is 77, skipped.  Proofs are of the sources as they are; proof.h, and stdatomic.h in include, take the place of what the
compiler knows."""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
VENV = ROOT / "build" / "venv-proof"
PACKAGE = "ethcheck==0.1.4"
SKIPPED = 77
UNWIND = 80  # more than any loop turns; that it suffices is proved as well
SECONDS = 1800

# Proof: (source, what is replaced, by what).
SEEDED = {
    "bits.align": ("base/bits.h", "(x + align - 1) & ~(align - 1)", "(x + align) & ~(align - 1)"),
    "bits.count": ("base/bits.h", "0x33333333u) + ((x >> 2)", "0x33333333u) + ((x >> 1)"),
    "bits.ends": ("base/bits.h", "63 - mi_msb64(~x)", "64 - mi_msb64(~x)"),
    "bits.mask": ("base/bits.h", "n >= 32 ? UINT32_MAX", "n >= 31 ? UINT32_MAX"),
    "bits.runs": ("base/bits.h", "mi_min(have, n - have)", "have"),
    "bits.is_run": ("base/bits.h", "((x + (x & (0u - x))) & x) == 0", "((x + (x & (0u - x))) & (x >> 1)) == 0"),
    "bits.longest_run": ("base/bits.h", "at &= four >> n;", "at &= two >> n;"),
    "bits.clamp": ("base/bits.h", "(x > hi ? hi : x)", "(x >= hi ? lo : x)"),
    "classes.class_of": ("page/size_class.h", "block_size >= size ? 1 : 0)", "block_size > size ? 1 : 0)"),
    "classes.page_of_class": ("page/size_class.c", "{ 10880,   12,  2,", "{ 10880,   13,  2,"),
    "classes.aligned_long": ("page/size_class.h", "_mi_size_class_aligned_from(cls + 1, align)", "_mi_size_class_aligned_from(cls + 2, align)"),
    "word.word": ("page/page_word.h", "(((uint64_t)1 << MI_WORD_COUNT_SHIFT) - 1)", "(((uint64_t)1 << (MI_WORD_COUNT_SHIFT - 1)) - 1)"),
    "word.push": ("page/page_word.h", "chain.count + n == mi_load_relaxed(capacity)", "chain.count + n + 1 == mi_load_relaxed(capacity)"),
    "word.take": ("page/page_word.h", "_mi_page_word_make(state, 0, NULL)));", "_mi_page_word_make(MI_PAGE_OWNED, 0, NULL)));"),
    "word.let_go": ("page/page_word.h", "if (_mi_page_word_state(old) != MI_PAGE_SHARED) return false;", ""),
    "word.link": ("page/block.h", "0xF1DE83E19937733Du", "0xF1DE83E19937733Fu"),
    "padding.padding_size": ("page/padding.h", "(uint64_t)(block_size - size) * MI_MIX", "(uint64_t)size * MI_MIX"),
    "padding.padding_byte": ("page/padding.h", "int half = 64 - 4 * (int)rest;", "int half = 68 - 4 * (int)rest;"),
    "padding.padding_rest": ("page/padding.h", "rest - MI_PADDING_SIZE <= block_size - MI_PADDING_SIZE", "rest <= block_size"),
    "padding.padding_twice_long": ("page/padding.h", "rest - MI_PADDING_SIZE <=", "(rest & 0xFFFF) - MI_PADDING_SIZE <="),
    "region.slice": ("arena/region.h", "(char*)region->base + (slice << MI_SLICE_SHIFT)", "(char*)region->base + ((uint32_t)slice << MI_SLICE_SHIFT)"),
    "region.groups": ("arena/region.h", "region->n_chunks > (size_t)MI_REGION_GROUPS <<", "region->n_chunks > (size_t)2 * MI_REGION_GROUPS <<"),
    "region.parts": ("arena/place.h", "mi_min(n, MI_CHUNK_SLICES - at)", "mi_min(n, MI_CHUNK_SLICES)"),
    "region.huge": ("arena/region.h", "os_page_size / 8 * os_page_size <=", "os_page_size * 8 <="),
    "recall.recall": ("arena/recall.h", "until < now + MI_RECALL_MS_MOST ? until", "until < now + 2 * MI_RECALL_MS_MOST ? until"),
}


def proofs():
    """FILE.NAME of each."""
    return [f"{path.stem}.{name}" for path in sorted(HERE.glob("*.c"))
            for name in re.findall(r"^void proof_(\w+)\(void\)", path.read_text(encoding="utf-8"), re.M)]


def is_quick(proof):
    return not proof.endswith("_long")


class Checker:
    """CBMC or ESBMC."""

    def __init__(self, path):
        self.path, self.is_cbmc = path, pathlib.Path(path).name.startswith("cbmc")

    def commands(self, proof, src):
        """In turn, until one has a result."""
        file, name = proof.split(".")
        common = [self.path, str(HERE / f"{file}.c"), "--function", f"proof_{name}", "--unwind", str(UNWIND), "-DNDEBUG", "-DMI_STATIC_LIB"]
        places = [str(HERE / "include"), str(HERE), str(src), str(ROOT / "include")]
        common += [word for place in places for word in ("-I", place)]
        if self.is_cbmc:
            return [[*common, "--bounds-check", "--pointer-check", "--signed-overflow-check", "--undefined-shift-check", "--unwinding-assertions"]]
        common += ["-DMI_PROOF_ESBMC", "--no-library", "--overflow-check"]
        return [[*common, "--ub-shift-check"], common]  # 7.7 fails where an operand is wider than the other

    def check(self, proof, src):
        """(holds, fails or broken; why)"""
        said = ""
        for command in self.commands(proof, src):
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
            except subprocess.TimeoutExpired:
                return "broken", f"no result within {SECONDS} s"
            said = done.stdout + done.stderr
            if re.search(r"^VERIFICATION SUCCESSFUL", said, re.M):
                return "holds", ""
            if re.search(r"^VERIFICATION FAILED", said, re.M):
                found = re.search(r"Violated property:\n(.*\n.*\n.*)", said) or re.search(r"^\[.*: FAILURE$", said, re.M)
                return "fails", " ".join(found[found.lastindex or 0].split()) if found else ""
        return "broken", " ".join(said.split()[-40:])


def find_checker(installs):
    for name in ("cbmc", "esbmc"):
        if shutil.which(name):
            return Checker(shutil.which(name))
    own = VENV / "bin" / "esbmc"
    if not own.exists() and installs:
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
        subprocess.run([str(VENV / "bin/pip"), "install", "--quiet", "--no-deps", PACKAGE], check=True)
        own.chmod(0o755)
    return Checker(str(own)) if own.exists() else None


def with_fault(folder, proof):
    file, before, after = SEEDED[proof]
    shutil.copytree(ROOT / "src", folder, dirs_exist_ok=True)
    path = pathlib.Path(folder, file)
    text = path.read_text(encoding="utf-8")
    if text.count(before) != 1:
        sys.exit(f"{proof}: src/{file} has {text.count(before)} times: {before}")
    path.write_text(text.replace(before, after), encoding="utf-8")
    return folder


def run_one(checker, proof, seeded):
    start = time.monotonic()
    if seeded:
        with tempfile.TemporaryDirectory() as folder:
            result, why = checker.check(proof, with_fault(folder, proof))
    else:
        result, why = checker.check(proof, ROOT / "src")
    is_ok = result == ("fails" if seeded else "holds")
    print(f'{"ok" if is_ok else "WRONG":6} {proof:28} {"with a fault " if seeded else ""}{result} {time.monotonic() - start:6.1f} s'
          f'{"" if is_ok else "  " + why}', flush=True)
    return is_ok


def self_test():
    wrong = [what for what, holds in {
        "there are proofs": len(proofs()) > 20,
        "each has a fault": sorted(SEEDED) == sorted(proofs()),
        "the faults are in the sources": all((ROOT / "src" / file).read_text(encoding="utf-8").count(before) == 1
                                             for file, before, _ in SEEDED.values()),
        "some are quick": {is_quick(proof) for proof in proofs()} == {True, False},
    }.items() if not holds]
    print("\n".join(f"self-test: {what}: NO" for what in wrong) or "self-test: passed")
    return bool(wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("proofs", nargs="*", metavar="FILE.NAME")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seeded", action="store_true")
    parser.add_argument("--install", action="store_true", default="MI_PROOF_INSTALL" in os.environ)
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    if args.self_test:
        return self_test()
    chosen = args.proofs or [proof for proof in proofs() if args.all or is_quick(proof)]
    unknown = [proof for proof in chosen if proof not in SEEDED]
    if unknown:
        parser.error(f"no such proof: {' '.join(unknown)}")
    checker = find_checker(args.install)
    if checker is None:
        print("skip: there is no model checker: neither cbmc nor esbmc, nor that of `make proof`")
        return SKIPPED
    rows = [(proof, seeded) for seeded in ([False, True] if args.seeded else [False]) for proof in chosen]
    n_wrong = sum(not run_one(checker, *row) for row in rows)
    print(f"{len(rows)} runs of {checker.path}, {n_wrong} not as expected")
    return 1 if n_wrong or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
