#!/usr/bin/env python3
"""The library does not compile for a processor without atomic operations on 64 bits, and says why.

  test/platforms/refused.py --cc COMPILER --source src/static.c --include include

The compiler is told that it has none, and, if it can compile for x86 with 32 bits, to compile for an 80386, which has none."""

import argparse
import subprocess
import sys

MESSAGE = "mimalloc needs atomic operations on 64 bits"
CXX = ["-x", "c++", "-std=gnu++17"]
X86 = ["-m32", "-isystem", "/usr/include/x86_64-linux-gnu"]
# The name that the compiler's <stdatomic.h> has the answer from; the other one is unknown to it.
LOCKS = [flag for name in ("__GCC_ATOMIC_LLONG_LOCK_FREE", "__CLANG_ATOMIC_LLONG_LOCK_FREE")
         for flag in (f"-U{name}", f"-D{name}=1")]


def compiled(args, *flags, text=None):
    source = ["-"] if text else [args.source]
    command = [args.cc, "-O0", "-w", "-fsyntax-only", f"-I{args.include}", *flags, *source]
    done = subprocess.run(command, capture_output=True, text=True, input=text, timeout=300, check=False)
    return done.returncode == 0, done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option in ("--cc", "--source", "--include"):
        parser.add_argument(option, required=True)
    args = parser.parse_args()
    cases = [("as it is", [], True), ("no such operations", LOCKS, False), ("no such operations, C++", LOCKS + CXX, False)]
    if compiled(args, *X86, "-x", "c", text="#include <stdatomic.h>\n#include <errno.h>\n#include <stdio.h>\n")[0]:
        cases += [("80586", [*X86, "-march=i586"], True), ("80386", [*X86, "-march=i386"], False)]
        if compiled(args, *X86, *CXX, text="#include <atomic>\n")[0]:
            cases += [("80386, C++", [*X86, "-march=i386", *CXX], False)]
        else:
            print("80386, C++: the C++ library for 32 bits is not there")
    else:
        print("80386: this compiler does not compile for x86 with 32 bits")
    failed = 0
    for name, flags, is_accepted in cases:
        ok, said = compiled(args, *flags)
        is_right = (ok == is_accepted and (ok or MESSAGE in said))
        failed += not is_right
        print(f"{'passed' if is_right else 'FAILED'}: {name}" + ("" if is_right else f": {'compiled' if ok else said[:2000]}"))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
