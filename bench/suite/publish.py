"""Makes what is published from one file of results, docs/benchmarks/results.json: the pages beside it, their charts, and
the block of the README between two marks. The same functions say what differs from the file. Needs packages only to draw.

Each chart ends with two digests: of the results it was drawn from, and of the drawing."""

import datetime
import hashlib
import json
import pathlib
import re

from . import machine, pages, results

BEGIN = '<!-- made by "make bench-publish" from docs/benchmarks/results.json -->'
END = "<!-- end of what is made -->"
NEEDED = ("run", "modes", "landscape", "bugs")
CHARTS = {"overall.svg": "run", "time.svg": "run", "memory.svg": "run", "landscape.svg": "landscape"}  # of which section
STAMP = re.compile(r"<!-- results ([0-9a-f]{16}), drawing ([0-9a-f]{16}) -->\n\Z")
OLD_DAYS, OLD_COMMITS = 30, 20  # from then on a warning


class Published:
    def __init__(self, root=machine.ROOT):
        self.directory, self.readme = pathlib.Path(root, "docs/benchmarks"), pathlib.Path(root, "README.md")
        self.file = self.directory / "results.json"

    def sections(self):
        """All that is published, or a FormatError that says what is not fit for it."""
        sections = results.read(str(self.file))
        for name in NEEDED:
            if name not in sections:
                raise results.FormatError(f"{self.file}: holds nothing of '{name}'")
        for name, section in sections.items():
            expect_fit(f"{self.file}: {name}", section)
        return sections

    def take(self, path):
        """The sections of another file replace those that are here."""
        own = results.read(str(self.file)) if self.file.exists() else {}
        taken = results.read(path)
        for name, section in taken.items():
            expect_fit(f"{path}: {name}", section)
        self.directory.mkdir(parents=True, exist_ok=True)
        results.write_all(str(self.file), own | taken)

    # ---- what it makes

    def texts(self, sections):
        """Path to what the file there must hold."""
        return {self.directory / "README.md": pages.results(sections["run"]),
                self.directory / "modes.md": pages.modes(sections["modes"]),
                self.directory / "landscape.md": pages.landscape(sections["landscape"]),
                self.directory / "security.md": pages.security(sections["bugs"]),
                self.readme: with_block(read(self.readme), pages.readme(sections))}

    def write(self, draw):
        """draw(name, section) gives a chart. Gives the paths of what was written."""
        sections = self.sections()
        texts = self.texts(sections)
        for name, of in CHARTS.items():
            texts[self.directory / name] = stamped(draw(name, pages.shown(sections[of])), sections[of])
        for path, text in texts.items():
            path.write_text(text, encoding="utf-8")
        return list(texts)

    # ---- what differs

    def differences(self):
        """Texts; none if all that is published was made from the file."""
        try:
            sections = self.sections()
            texts = self.texts(sections)
        except results.FormatError as error:
            return [str(error)]
        found = [difference(path, read(path), text) for path, text in texts.items()]
        found += [chart_difference(self.directory / name, sections[of]) for name, of in CHARTS.items()]
        return list(filter(None, found))

    def warnings(self):
        """What is no error: the age of the results, and that they do not belong together."""
        sections = results.read(str(self.file))
        commits = {name: section.commit for name, section in sections.items()}
        found = [age(name, section) for name, section in sections.items()]
        if not all(machine.is_same_library(commit, commits["run"]) for commit in commits.values()):
            found.append("not all of one library: " + ", ".join(f"{name} {commit[:12]}" for name, commit in commits.items()))
        found += [f"{name}: a quick run" for name, section in sections.items() if getattr(section, "is_quick", False)]
        return list(filter(None, found))


def read(path):
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


def expect_fit(where, section):
    if not getattr(section, "is_complete", True):
        raise results.FormatError(f"{where}: an interrupted run")
    if not section.commit:
        raise results.FormatError(f"{where}: does not say of which commit the library is")
    if section.commit.endswith(machine.CHANGED):
        raise results.FormatError(f"{where}: the library is that of a commit with changes")


def with_block(text, block):
    """The text with that block between its marks."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise results.FormatError(f"README.md has no lines\n{BEGIN}\n{END}")
    return f"{before}{BEGIN}\n\n{block}\n{END}{after}"


def difference(path, text, expected):
    if text == expected:
        return None
    if not text:
        return f"{path}: is not there"
    lines, wanted = text.splitlines(), expected.splitlines()
    i = next((i for i, pair in enumerate(zip(lines, wanted)) if pair[0] != pair[1]), min(len(lines), len(wanted)))
    has, should = ((some[i] if i < len(some) else "(the end)")[:300] for some in (lines, wanted))
    return f"{path}:{i + 1}: differs from the results\n  has:    {has}\n  should: {should}"


# ---- charts

def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def digest_of(section):
    return digest(json.dumps(results.as_plain(section), sort_keys=True))


def stamped(drawing, section):
    return f"{drawing}<!-- results {digest_of(section)}, drawing {digest(drawing)} -->\n"


def chart_difference(path, section):
    text = read(path)
    stamp = STAMP.search(text)
    if not stamp:
        return f"{path}: is not there, or was not made by 'make bench-publish'"
    if stamp[1] != digest_of(section):
        return f"{path}: was drawn from other results"
    return None if stamp[2] == digest(text[:stamp.start()]) else f"{path}: was changed after it was drawn"


# ---- age

def age(name, section):
    """None if the results are not old, nor the library another one by now."""
    days = (datetime.date.today() - datetime.date.fromisoformat(section.date[:10])).days
    commits = machine.commits_since(section.commit)
    if commits is None:
        return f"{name}: this clone does not have commit {section.commit[:12]}, which was measured"
    if days < OLD_DAYS and commits < OLD_COMMITS:
        return None
    return f"{name}: measured {days} days ago, and {commits} commits have changed the library since {section.commit[:12]}"
