"""The invariants of the sources: lines `// P1  text` in the comment at the head of a file define them, and comments and documents
refer to them by that name, or as `page.h, P1`.  check-docs.py and draw-structure.py share this."""

import collections
import re

from units import LAYERS, SKIPPED

DEFINITION = re.compile(r"// ([A-Z]{1,2})(\d+)  +(\S.*)")
# (?!...): standards of C are no references.
REFERENCE = re.compile(r"(?:([\w./]+\.[ch])`?, )?\b(?!C(?:99|11|17|23)\b)([A-Z]{1,2})(\d+)\b")
SENTENCE = re.compile(r".*?\.(?= +[A-Z\"'`(]|$)|.*")

# path: relative to the root; topic: the first sentence of the file; sentence: that of the invariant.
Invariant = collections.namedtuple("Invariant", "prefix number path line topic sentence")


def defined_in(path, text):
    """The invariants that a file defines, in the order of its lines."""
    lines = text.split("\n")
    found = []
    for i, line in enumerate(lines):
        if not line.startswith("//"):
            break
        match = DEFINITION.fullmatch(line)
        if match:
            words = [match[3]]
            while lines[i + len(words)].startswith("//     "):
                words.append(lines[i + len(words)][2:].strip())
            topic = lines[0][2:].split("  Layer:")[0].strip().rstrip(".")
            found.append(Invariant(match[1], int(match[2]), path, i + 1, topic, SENTENCE.match(" ".join(words))[0]))
    return found


class Invariants:
    def __init__(self, root):
        self.comments = {}  # path: [(line, text)]
        self.all = []
        for layer in LAYERS:
            for path in sorted((root / "src" / layer).glob("*.[ch]")):
                text = path.read_text(encoding="utf-8")
                name = path.relative_to(root).as_posix()
                self.all += defined_in(name, text)
                # strings are skipped, comments are not
                self.comments[name] = [(text.count("\n", 0, m.start()) + 1, m[0]) for m in SKIPPED.finditer(text) if m[0][0] == "/"]
        self.by_file = collections.defaultdict(list)    # (prefix, path): numbers
        self.by_prefix = collections.defaultdict(set)   # prefix: paths
        for invariant in self.all:
            self.by_file[invariant.prefix, invariant.path].append(invariant.number)
            self.by_prefix[invariant.prefix].add(invariant.path)

    def wrong_definitions(self):
        """(path, text) for each prefix that two files define, and each file whose numbers are not 1, 2, 3, ..."""
        for prefix, paths in sorted(self.by_prefix.items()):
            if len(paths) > 1:
                yield min(paths), f"{prefix}1 and so on are defined in {', '.join(sorted(paths))}"
        for (prefix, path), numbers in self.by_file.items():
            if numbers != list(range(1, len(numbers) + 1)):
                yield path, f"defines {', '.join(f'{prefix}{n}' for n in numbers)}: not 1, 2, 3 and so on"

    def wrong_references(self, text):
        """What text refers to that is not there. Words with a prefix that no file has are no references, unless after a file."""
        for file, prefix, number in REFERENCE.findall(text):
            paths = self.by_prefix.get(prefix, set())
            if file:
                paths = {path for path in paths if f"/{path}".endswith("/" + file.lstrip("./"))}
            if (file or paths) and not any(int(number) in self.by_file[prefix, path] for path in paths):
                yield f"{file}, {prefix}{number} does not exist" if file else f"{prefix}{number} does not exist"

    def index(self):
        """A page that lists them, by layer and file."""
        lines = ["# Invariants", "", "What comments and pages refer to by a letter and a number, with the first sentence of each; the "
                 "sources say the rest.", "This page is made from them by `scripts/draw-structure.py`."]
        layer = None
        for prefix, path in self.by_file:
            of_file = [invariant for invariant in self.all if (invariant.prefix, invariant.path) == (prefix, path)]
            if path.split("/")[1] != layer:
                layer = path.split("/")[1]
                lines += ["", f"## {layer}"]
            lines += ["", f"**{prefix}**: `{path}`. {marked(of_file[0].topic)}.", ""]
            lines += [f"- {prefix}{i.number}: {marked(i.sentence)}" for i in of_file]
        return "\n".join(lines) + "\n"


def marked(text):
    """With names of C as code."""
    return re.sub(r"(?<![`\w])(_mi_\w+|MI_\w+|mi_\w+|\w+_\w+)(?![`\w])", r"`\1`", text).replace("<", "&lt;")
