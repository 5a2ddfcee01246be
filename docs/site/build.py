#!/usr/bin/env python3
"""Builds the documentation site: `make site`, or docs/site/build.py [OUT], by default into build/site.

The documents are those of the tree.  A stage, OUT-source, has them in the same directories, with links to sources turned into links to
pages that show them, and drawings turned into pictures; the reference is made from include/*.h.  Sphinx, MyST and Furo come from PyPI
into build/site-venv (requirements.txt), or, if that is not possible, from Debian's packages.  Exit status: 77 if neither can be had."""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))

import diagrams  # noqa: E402
import reference  # noqa: E402

PAGES = [*sorted(p.relative_to(ROOT).as_posix() for pattern in ("*.md", "*/README.md", "test/*/README.md") for p in ROOT.glob(pattern)
                 if p.parts[len(ROOT.parts)] not in ("build", "docs")), *sorted(p.relative_to(ROOT).as_posix() for p in (ROOT / "docs").rglob("*.md") if p.parent != HERE)]
LINK = re.compile(r"(!?\[[^\]]*\])\(([^()\s]+)\)")
DRAWING = re.compile(r"^```mermaid\n(.*?)^```\n", re.M | re.S)
FENCE = re.compile(r"(^```.*?^```[ \t]*$|`[^`\n]*`)", re.M | re.S)
LANGUAGES = {".c": "c", ".h": "c", ".cpp": "cpp", ".py": "python", ".sh": "sh", ".cmake": "cmake", ".txt": "cmake", ".toml": "toml",
             ".json": "json"}
SHOWN_MAX = 60_000  # characters; of longer files, only the beginning
DEBIAN = ("python3-sphinx", "python3-myst-parser", "furo")


class Stage:
    def __init__(self, target):
        self.target, self.sources = target, {}  # sources that pages link to
        self.headers = sorted((ROOT / "include").glob("*.h"))

    def write(self, name, text):
        path = self.target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def link(self, page, target):
        """The link as the site has it."""
        if re.match(r"[a-z]+:|#", target):
            return target
        path, _, anchor = target.partition("#")
        here = pathlib.PurePosixPath(page).parent
        name = os.path.normpath(here / path)
        if (ROOT / name).is_dir():
            name += "/README.md"
        if name in PAGES:
            found = name
        elif name.startswith("include/") and name.endswith(".h"):
            found = f"reference/{pathlib.PurePosixPath(name).stem}.rst"
        elif pathlib.PurePosixPath(name).suffix in (".svg", ".png"):
            return target
        else:
            found = self.sources.setdefault(name, f"source/{name}.rst")
        return os.path.relpath(found, here) + (f"#{anchor}" if anchor else "")

    def page(self, name):
        text = (ROOT / name).read_text(encoding="utf-8")
        text = DRAWING.sub(lambda match: "```{raw} html\n" + diagrams.svg(match[1]) + "\n```\n", text)
        parts = FENCE.split(text)
        for i in range(0, len(parts), 2):
            parts[i] = LINK.sub(lambda match: f"{match[1]}({self.link(name, match[2])})", parts[i])
        self.write(name, "".join(parts))

    def source(self, name, page):
        path = ROOT / name
        if not path.is_file():
            raise SystemExit(f"site: a page links to {name}, which does not exist")
        text = path.read_text(encoding="utf-8")
        note = ""
        if len(text) > SHOWN_MAX:
            text, note = text[:SHOWN_MAX].rpartition("\n")[0], "\n\nThe rest is left out here.\n"
        code = "\n".join("   " + line if line else "" for line in text.split("\n"))
        self.write(page, f":orphan:\n\n{name}\n{'=' * len(name)}\n\n.. code-block:: {LANGUAGES.get(path.suffix, 'text')}\n   :linenos:\n\n{code}\n{note}")

    def examples(self):
        for path in sorted((ROOT / "examples").glob("*/*")):
            name = path.relative_to(ROOT).as_posix()
            if path.is_file():
                self.sources.setdefault(name, f"source/{name}.rst")

    def reference(self):
        texts = {path.name: path.read_text(encoding="utf-8") for path in self.headers}
        known = {name for text in texts.values() for name in reference.names_of(text)}
        maker = reference.Reference(known)
        order = sorted(texts, key=lambda name: (len(name) > len("mimalloc.h"), name))
        for name in order:
            self.write(f"reference/{pathlib.PurePosixPath(name).stem}.rst", maker.page(name, texts[name]))
        self.write("reference/index.rst", "Interface\n=========\n\nThe public headers are the manual; these pages show them.\n\n.. toctree::\n"
                   "   :maxdepth: 2\n\n" + "".join(f"   {pathlib.PurePosixPath(name).stem}\n" for name in order) +
                   "\n:ref:`All functions by name <genindex>`.\n")

    def make(self):
        shutil.rmtree(self.target, ignore_errors=True)
        for name in PAGES:
            self.page(name)
        self.write("index.md", (HERE / "index.md").read_text(encoding="utf-8"))
        for name in ("conf.py",):
            shutil.copy(HERE / name, self.target / name)
        (self.target / "_static").mkdir()
        shutil.copy(HERE / "style.css", self.target / "_static/style.css")
        for picture in (ROOT / "docs").rglob("*.svg"):
            shutil.copy(picture, self.target / picture.relative_to(ROOT))
        self.examples()
        for name, page in sorted(self.sources.items()):
            self.source(name, page)
        self.write("source/index.rst", ":orphan:\n\nSources shown here\n==================\n\n.. toctree::\n   :maxdepth: 1\n\n" +
                   "".join(f"   {page.removeprefix('source/').removesuffix('.rst')}\n" for page in sorted(self.sources.values())))
        self.reference()


def version():
    header = (ROOT / "include/mimalloc.h").read_text(encoding="utf-8")
    number = int(re.search(r"#define MI_MALLOC_VERSION (2\d+)", header)[1])
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def complete_theme(out):
    """Debian's Furo refers to files of other packages by addresses of a web server, and to a module, which browsers do not load from
    files, and it has lost the rule for browsers that prefer dark pages.  All of these become a part of the site."""
    style, script = out / "_static/styles/furo.css", out / "_static/scripts/furo.js"
    text = style.read_text(encoding="utf-8")
    normalize = pathlib.Path("/usr/share/javascript/normalize.css/normalize.min.css")
    wanted = "@import url(/javascript/normalize.css/normalize.css);"
    if wanted in text:
        style.write_text(text.replace(wanted, normalize.read_text(encoding="utf-8") if normalize.exists() else ""), encoding="utf-8")
    text = style.read_text(encoding="utf-8")
    dark = re.search(r"body\[data-theme=dark\](\{[^}]*\})", text)
    if dark and "prefers-color-scheme" not in text:
        style.write_text(f"{text}@media(prefers-color-scheme:dark){{body:not([data-theme=light]){dark[1]}}}", encoding="utf-8")
    text = script.read_text(encoding="utf-8")
    wanted = 'import Gumshoe from "./gumshoe-patched.js";\n'
    if wanted in text:
        module = (script.parent / "gumshoe-patched.js").read_text(encoding="utf-8")
        script.write_text(module + "\n" + text.replace(wanted, ""), encoding="utf-8")


def works(python):
    return os.path.exists(python) and subprocess.run([python, "-c", "import sphinx, myst_parser, furo"], capture_output=True,
                                                     check=False).returncode == 0


def quietly(*command):
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def python_with_sphinx(venv):
    """An interpreter that has Sphinx: that of a virtual environment with the pinned versions, or else Debian's.  None: neither."""
    need = ROOT / "scripts/need.sh"
    if subprocess.run([need, "graphviz:dot", "mscgen"], check=False).returncode != 0:
        return None
    made = venv / "requirements.txt"  # is there when everything is
    wanted = (HERE / "requirements.txt").read_text(encoding="utf-8")
    if made.exists() and made.read_text(encoding="utf-8") == wanted and works(venv / "bin/python"):
        return venv / "bin/python"
    shutil.rmtree(venv, ignore_errors=True)
    # Debian has the module venv in a package of its own.
    if (quietly(sys.executable, "-m", "venv", venv) or (quietly(need, "python3-venv:python3-venv") and quietly(sys.executable, "-m", "venv", venv))) \
            and quietly(venv / "bin/pip", "install", "--quiet", "-r", HERE / "requirements.txt") and works(venv / "bin/python"):
        made.write_text(wanted, encoding="utf-8")
        return venv / "bin/python"
    for python in (sys.executable, "/usr/bin/python3"):
        if works(python):
            return python
    if quietly(need, *(f"{name}:{name}" for name in DEBIAN)) and works("/usr/bin/python3"):
        return "/usr/bin/python3"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", nargs="?", type=pathlib.Path, default=ROOT / "build/site")
    parser.add_argument("--python", help="an interpreter that has Sphinx, MyST and Furo")
    args = parser.parse_args()
    out = args.out.resolve()
    python = args.python or python_with_sphinx(out.parent / "site-venv")
    if not python:
        print("skipped: Sphinx, MyST and Furo, dot or mscgen cannot be had")
        return 77
    stage = out.parent / f"{out.name}-source"
    Stage(stage).make()
    shutil.rmtree(out, ignore_errors=True)
    result = subprocess.run([python, "-m", "sphinx", "-q", "-W", "--keep-going", "-E", "-b", "html", "-d", f"{out}-doctrees", stage, out],
                            env={**os.environ, "MI_SITE_VERSION": version()}, check=False)
    if result.returncode == 0:
        complete_theme(out)
        print(f"{out}/index.html")
    return result.returncode


if __name__ == "__main__":
    sys.exit(main())
