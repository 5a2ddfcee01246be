"""The Python package: `pip install` builds the library, and what was installed works by itself."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import zipfile

import pytest
from conftest import PYTHON_DIR, ROOT

MODULES = ("setuptools", "wheel", "pip")
PROGRAM = """import json, sys, mimalloc
print(json.dumps([mimalloc.is_active(), mimalloc.version(), mimalloc.stats()["malloc_normal_count"], mimalloc.__file__]))
sys.exit(9)
"""


def run(*command, cwd, status=0, env=None):
    base = {name: value for name, value in os.environ.items() if not name.startswith(("MIMALLOC_", "LD_PRELOAD", "PYTHON"))}
    result = subprocess.run(list(map(str, command)), cwd=cwd, env={**base, **(env or {})}, capture_output=True, text=True, timeout=280,
                            check=False)
    assert result.returncode == status, result.stdout + result.stderr
    return result


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of what a checkout has of it: a build leaves files behind."""
    root = tmp_path_factory.mktemp("tree")
    ignored = shutil.ignore_patterns("__pycache__", "build", "*.egg-info", "dist")
    for name in ("src", "include", "python"):
        shutil.copytree(ROOT / name, root / name, ignore=ignored)
    shutil.copy(ROOT / "LICENSE", root)
    return root


@pytest.fixture(scope="module")
def virtual(tree, tmp_path_factory):
    """An environment with the package; its dependencies are those of the system."""
    lacks = [name for name in MODULES if subprocess.run([sys.executable, "-c", f"import {name}"], capture_output=True, check=False).returncode]
    if lacks and lacks != ["pip"]:
        pytest.skip(f"Python lacks {', '.join(lacks)} (Debian: python3-setuptools python3-wheel)")
    place = tmp_path_factory.mktemp("virtual")
    made = subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", str(place)], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        pytest.skip("no virtual environment can be made (Debian: python3-venv)")
    run(place / "bin/python", "-m", "pip", "install", "-q", "--no-build-isolation", "--no-index", tree / "python", cwd=place,
        env={"CFLAGS": "-O1"})
    return place


def test_installed_command(virtual, tmp_path):
    said = run(virtual / "bin/mimalloc", "--version", cwd=tmp_path).stdout
    header = (ROOT / "include/mimalloc.h").read_text()
    n = int(header.partition("#define MI_MALLOC_VERSION ")[2].split()[0])
    assert f"{n // 10000}.{n // 100 % 100}.{n % 100}" in said
    rows = json.loads(run(virtual / "bin/mimalloc", "doctor", "--json", cwd=tmp_path, status=0).stdout)
    library = next(row for row in rows if row["what"] == "library")
    assert library["state"] == "ok" and library["value"].startswith(str(virtual)) and library["value"].endswith("mimalloc/lib/libmimalloc.so")


def test_installed_module_runs_programs(virtual, tmp_path):
    (tmp_path / "prog.py").write_text(PROGRAM)
    result = run(virtual / "bin/python", "-m", "mimalloc", "run", "prog.py", cwd=tmp_path, status=9)
    is_active, _, blocks, path = json.loads(result.stdout)
    assert is_active and blocks > 10000 and path.startswith(str(virtual))


def test_installed_secure_library_checks(virtual, tmp_path):
    from conftest import compile_c
    program = compile_c(tmp_path, "twice", "#include <stdlib.h>\nint main(void) { void* p = malloc(50); free(p); free(p); return 0; }")
    result = run(virtual / "bin/mimalloc", "run", "--secure", "--", program, cwd=tmp_path, status=-signal.SIGABRT, env={"MIMALLOC_SHOW_ERRORS": "1"})
    assert "double free" in result.stderr


def test_wheel_without_a_compiler(virtual, tree, tmp_path):
    """It says so, and the command then looks for an installed library."""
    result = run(virtual / "bin/python", "-m", "pip", "wheel", "-v", "--no-build-isolation", "--no-index", "--no-deps", "-w", tmp_path,
                 tree / "python", cwd=tmp_path, env={"CC": "/gone/cc"})
    assert "the library was not built" in result.stdout + result.stderr
    wheel = next(tmp_path.glob("*.whl"))
    names = zipfile.ZipFile(wheel).namelist()
    assert "mimalloc/data/flame.html" in names and not any(name.startswith("mimalloc/lib/") for name in names)
    run(virtual / "bin/python", "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", tmp_path / "bare", wheel, cwd=tmp_path)
    found = subprocess.run(["sh", "-c", "ldconfig -p | grep -c libmimalloc"], capture_output=True, text=True, check=False).stdout.strip()
    if found in ("", "0") and not list(pathlib.Path("/usr/local/lib").glob("libmimalloc*")):
        result = run(virtual / "bin/python", "-m", "mimalloc", "run", "true", cwd=tmp_path, status=2, env={"PYTHONPATH": str(tmp_path / "bare")})
        assert "libmimalloc.so was not found. Install it" in result.stderr


def test_source_distribution_builds(virtual, tree, tmp_path):
    run(virtual / "bin/python", "setup.py", "-q", "sdist", "-d", tmp_path, cwd=tree / "python")
    archive = next(tmp_path.glob("*.tar.gz"))
    shutil.unpack_archive(archive, tmp_path / "unpacked")
    source = next((tmp_path / "unpacked").iterdir())
    assert (source / "c/src/static.c").is_file() and (source / "c/include/mimalloc.h").is_file()
    run(virtual / "bin/python", "-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-index", "--no-deps", "-w", tmp_path / "wheel",
        source, cwd=tmp_path, env={"CFLAGS": "-O0"})
    wheel = next((tmp_path / "wheel").glob("*.whl"))
    assert "-py3-none-linux_" in wheel.name
    assert "mimalloc/lib/libmimalloc.so" in zipfile.ZipFile(wheel).namelist()


def test_no_file_is_long():
    for path in (PYTHON_DIR / "mimalloc").glob("*.py"):
        assert len(path.read_text().splitlines()) <= 400, path
