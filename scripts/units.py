"""Reads the sources of the library: what each file defines, declares and names, and how the units of a layer depend on each
other.  check-layers.py and draw-structure.py share it.

A unit is foo.h with foo.c; either may be missing.  This is no C parser: it knows how clang-format lays our files out. What is
defined begins in column 0 and ends with a line that ends in `;`, or with the next `}` in column 0."""

import collections
import re

LAYERS = ["base", "prim", "support", "arena", "page", "heap", "api", "override"]

# Comments, strings and characters.
SKIPPED = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'", re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(\(?)", re.M)
UNDEF = re.compile(r"^[ \t]*#[ \t]*undef[ \t]+(\w+)", re.M)
FORWARD = re.compile(r"^[ \t]*(?=typedef\b|\w+ \w+;)(?:typedef )?(?:struct|union) (\w+)(?: +(\w+))?;", re.M)
COMPOUND = re.compile(r"(?:typedef )?(?:struct|union|enum)\b[^(=;]*\{")
OWN_END = re.compile(r"(?:^|\s)(\w+)\((?:[^()]|\([^()]*\))*\)$")
INTERNAL = re.compile(r"_?mi_|MI_")

# Its header is the interface of the layer, and every file of the layer defines some of it.
PRIM = ("prim", "prim")
PUBLIC = ("base", "public")  # includes the public headers

# One thing that a file defines or declares. kind: function, variable, type or macro.
Item = collections.namedtuple("Item", "name kind path line n_lines is_static")


def without_comments(text):
    """The text with as many lines, with empty strings, and a space for each comment."""
    def blank(match):
        return '""' if match[0][0] == '"' else "0" if match[0][0] == "'" else " " + "\n" * match[0].count("\n")
    return SKIPPED.sub(blank, text)


def without_calls(text, names):
    """Removes uses of function-like macros, with their arguments."""
    while True:
        start = next((m for m in re.finditer(r"\b(\w+)\(", text) if m[1] in names), None)
        if not start:
            return text
        end, depth = start.end(), 1
        while depth > 0 and end < len(text):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        text = text[:start.start()] + " " + text[end:]


class Source:
    """A file of a layer. `defined` and `declared` are items, `names` all words but those of forward declarations,
    `forward` maps names of types that are declared only to their tags."""

    def __init__(self, path, text, macros):
        self.path = path
        self.is_header = path.suffix == ".h"
        self.layer = path.parent.name
        self.unit = (self.layer, path.stem)
        self.n_lines = text.count("\n")
        self.includes = re.findall(r'^\s*#\s*include\s+"(?:.*/)?(\w+)/(\w+)\.h"', text, re.M)
        self.includes += [(self.layer, name) for name in re.findall(r'^\s*#\s*include\s+"(\w+)\.h"', text, re.M)]
        code = without_comments(text)
        self.names = set(re.findall(r"[A-Za-z_]\w*", FORWARD.sub("", code)))
        self.defined, self.declared = [], []
        self.forward = {name: tag for tag, name in FORWARD.findall(code) if name}
        if self.is_header:
            undefined = set(UNDEF.findall(code))
            for match in DEFINE.finditer(code):
                if match[1] not in undefined:
                    self.add(self.defined, match[1], "macro", code.count("\n", 0, match.start()) + 1)
        own = {name for name, bracket in DEFINE.findall(code) if bracket}
        self.read(DIRECTIVE.sub(lambda m: "\n" * m[0].count("\n"), code).split("\n"), macros | own | {"__attribute__"}, own)

    def add(self, items, name, kind, line, n_lines=1, is_static=False):
        items.append(Item(name, kind, self.path, line, n_lines, is_static))

    def read(self, lines, macros, own):
        """`own`: macros of this file. They may stand for a whole declaration, or for its end."""
        i = 0
        while i < len(lines):
            start, head = i, lines[i].rstrip()
            i += 1
            if not re.match(r"[A-Za-z_]", head) or head == 'extern "" {':
                continue
            while not head.endswith((";", "{", "}")) and i < len(lines):
                if head.count("(") == head.count(")") and OWN_END.search(head) and OWN_END.search(head)[1] in own:
                    break
                head, i = f"{head} {lines[i].strip()}", i + 1
            if not head.endswith((";", "{", "}")):
                continue
            body = i
            if head.endswith("{"):
                while i < len(lines) and not lines[i].startswith("}"):
                    i += 1
                i += 1
            self.classify(without_calls(head, macros), lines[body:i], start + 1, i - start, macros)

    def classify(self, head, body, line, n_lines, macros):
        is_static = bool(re.search(r"\bstatic\b", head))
        head = re.sub(r"\s+", " ", head)
        if FORWARD.fullmatch(head):
            return
        if COMPOUND.match(head):
            tag = re.search(r"(?:struct|union|enum) (\w+)", head)
            last = re.search(r"(\w+)\s*;?\s*$", without_calls(body[-1], macros)) if body else re.search(r"(\w+) ?;$", head)
            if head.startswith("enum") or "enum" in head.split()[:2]:
                for constant in re.findall(r"\b(MI_\w+)", " ".join([head, *body])):
                    self.add(self.defined, constant, "macro", line)
            for match in (tag, last):
                if match:
                    self.add(self.defined, match[1], "type", line)
        elif head.startswith("typedef"):
            name = re.search(r"\(\*?(\w+)\)\(|\b(\w+)\(|(\w+)(?:\[.*\])?;$", head)
            if name:
                self.add(self.defined, name[1] or name[2] or name[3], "type", line)
        else:
            before = re.split("[={]", head)[0]
            function = re.search(r"(?<!\w)(\w+)\(", before)
            if function and "(*" not in before.split(function[0])[0]:
                where = self.defined if head.endswith(("{", "}")) else self.declared
                self.add(where, function[1], "function", line, n_lines, is_static)
                return
            where = self.declared if re.match(r"extern\b", head) else self.defined
            for part in before.rstrip("; ").split(","):
                name = re.search(r"\(\*\s*(\w+)\)", part) or re.search(r"(\w+)\s*(?:\[[^\]]*\])*\s*$", part)
                if name:
                    self.add(where, name[1], "variable", line, is_static=is_static)


class Units:
    """All sources below root/src. uses[a][b] are the names of unit b that unit a uses, in order."""

    def __init__(self, root):
        self.public, self.public_types = set(), {}
        macros = set()
        for path in sorted((root / "include").rglob("*.h")):
            text = without_comments(path.read_text(encoding="utf-8"))
            self.public |= set(re.findall(r"\bmi_\w+", text))
            self.public_types |= {name: tag for tag, name in FORWARD.findall(text) if name}
            macros |= {name for name, bracket in DEFINE.findall(text) if bracket and re.match("MI_|mi_attr_|mi_decl_", name)}
        texts = {}
        for layer in LAYERS:
            for path in sorted((root / "src" / layer).glob("*.[ch]")):
                texts[path] = path.read_text(encoding="utf-8")
                if path.suffix == ".h":
                    macros |= {name for name, bracket in DEFINE.findall(texts[path]) if bracket}
        self.sources = [Source(path, text, macros) for path, text in texts.items()]
        self.files = collections.defaultdict(list)
        for source in self.sources:
            self.files[source.unit].append(source)
        self.definers = self._definers()
        self.declarers = self._declarers()
        self.uses = {unit: self._uses(unit) for unit in self.files}

    @staticmethod
    def is_external(item):
        """May other files use it?"""
        return bool(INTERNAL.match(item.name)) and not item.is_static and item.kind in ("function", "variable")

    def _definers(self):
        """For each name the units that define it for others. What prim.h declares is its own."""
        definers = collections.defaultdict(set)
        interface = {item.name for source in self.files[PRIM] for item in source.declared}
        for source in self.sources:
            for item in source.defined:
                if source.is_header or self.is_external(item):
                    definers[item.name].add(PRIM if item.name in interface else source.unit)
        return definers

    def _declarers(self):
        """For types that a header declares and does not define: the units that do so, and their definers."""
        declarers = collections.defaultdict(set)
        for unit, forward in [(PUBLIC, self.public_types), *((source.unit, source.forward) for source in self.sources)]:
            for name, tag in forward.items():
                declarers[name].add(unit)
                self.definers[name] |= self.definers[tag]
        return declarers

    def owners(self, name):
        return sorted(self.definers.get(name, set()) | self.declarers.get(name, set()), key=self.rank)

    def _uses(self, unit):
        """A unit that includes the definition of a type depends on it, one that knows a declaration only on that."""
        includes = {target for source in self.files[unit] for target in source.includes}
        uses = collections.defaultdict(list)
        for name in sorted(set().union(*(source.names for source in self.files[unit]))):
            definers = self.definers.get(name, set())
            known = sorted(definers & includes, key=self.rank)
            if unit in definers or not known and unit in self.declarers.get(name, ()):
                continue
            if known or self.owners(name):
                uses[(known or self.owners(name))[0]].append(name)
        return uses

    @staticmethod
    def rank(unit):
        return LAYERS.index(unit[0]), unit[1]

    def layer(self, layer):
        """The units of a layer and those of the same layer that each uses."""
        units = sorted(unit for unit in self.files if unit[0] == layer)
        return {unit: sorted(used for used in self.uses[unit] if used[0] == layer) for unit in units}


def shortest_path(graph, start, end, skip=()):
    """The nodes from start to end, both included, by at least one edge that is not in `skip`; None if there is no path."""
    came_from, queue = {}, collections.deque([start])
    while queue:
        node = queue.popleft()
        for after in graph[node]:
            if (node, after) in skip or after in came_from:
                continue
            came_from[after] = node
            if after == end:
                path = [end, node]
                while path[-1] != start:
                    path.append(came_from[path[-1]])
                return path[::-1]
            queue.append(after)
    return None


def reduced(graph):
    """The graph without the edges that follow from others."""
    graph = {node: list(after) for node, after in graph.items()}
    for node, targets in graph.items():
        for target in list(targets):
            if shortest_path(graph, node, target, skip={(node, target)}):
                targets.remove(target)
    return graph
