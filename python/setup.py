"""Builds the wheel with the shared libraries in it, which the C compiler of the system makes from src/static.c.

Without a compiler the wheel has none, and the command then looks for an installed libmimalloc.  MIMALLOC_TOOLS_NO_BUILD=1 asks for
that."""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:
    from wheel.bdist_wheel import bdist_wheel

HERE = pathlib.Path(__file__).resolve().parent
COPY = HERE / "c"   # in a source distribution
TREE = COPY if (COPY / "src" / "static.c").is_file() else HERE.parent
FLAGS = """-std=gnu11 -O3 -DNDEBUG -DMI_BUILD_RELEASE -DMI_MALLOC_OVERRIDE -DMI_SHARED_LIB -DMI_SHARED_LIB_EXPORT -fPIC -shared
-fvisibility=hidden -fexceptions -fno-builtin-malloc -fno-semantic-interposition -ftls-model=initial-exec -pthread""".split()
LIBRARIES = {"libmimalloc.so": [], "libmimalloc-secure.so": ["-DMI_SECURE=4"]}


def version():
    """Level 2 of the interface, as mimalloc.h has it: 20401 is 2.4.1."""
    text = (TREE / "include" / "mimalloc.h").read_text(encoding="utf-8")
    n = int(re.search(r"#if MI_API_LEVEL < 3\s+#define MI_MALLOC_VERSION\s+(\d+)", text)[1])
    return f"{n // 10000}.{n // 100 % 100}.{n % 100}"


def compile_libraries(target):
    if os.environ.get("MIMALLOC_TOOLS_NO_BUILD") == "1" or not sys.platform.startswith("linux"):
        return False
    more = shlex.split(os.environ.get("CFLAGS", ""))
    compiler = shlex.split(os.environ.get("CC", "")) or [shutil.which("gcc") or shutil.which("clang") or "cc"]
    target.mkdir(parents=True, exist_ok=True)
    try:
        for name, flags in LIBRARIES.items():
            command = [*compiler, *FLAGS, *flags, *more, f"-I{TREE / 'include'}", str(TREE / "src" / "static.c"), "-o", str(target / name), "-ldl"]
            print(shlex.join(command))
            subprocess.run(command, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        shutil.rmtree(target)
        print(f"mimalloc-tools: the library was not built ({error}). Install a C compiler, or install libmimalloc: the command looks "
              "for it there.", file=sys.stderr)
        return False
    return True


class Build(build_py):
    def run(self):
        super().run()
        compile_libraries(pathlib.Path(self.build_lib) / "mimalloc" / "lib")


class Wheel(bdist_wheel):
    """For any Python 3 on this kind of machine: the libraries know nothing of Python."""

    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


class Source(sdist):
    """Takes the sources of the library along."""

    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        for name in ("src", "include"):
            target = pathlib.Path(base_dir) / "c" / name
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(TREE / name, target)
        shutil.copy(TREE / "LICENSE", pathlib.Path(base_dir) / "c" / "LICENSE")


class Binary(Distribution):
    def has_ext_modules(self):
        return True


setup(version=version(), distclass=Binary, cmdclass={"build_py": Build, "bdist_wheel": Wheel, "sdist": Source})
