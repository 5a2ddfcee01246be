"""The reference of the interface, made from the comments and declarations of a public header.

A header is a row of items: a comment at the beginning of a line, and the declarations that follow it.  Comments like
/* ---- heaps ---- */ begin sections."""

import dataclasses
import re

SECTION = re.compile(r"/\* -{4,} (.*?) -*\s*\*/$")
INLINE = r"mi_decl_inline|_mi_inline_linkage"
ATTRIBUTES = re.compile(rf"\b({INLINE}|mi_decl_(?:export|nodiscard|restrict|extension)|mi_attr_(?:noexcept|malloc)|mi_cdecl|extern|"
                        r"mi_attr_alloc_(?:size2?|align)\([^()]*\)|mi_decl_level\(\w+\))\s*")
PROTOTYPE = re.compile(r"^[ \t]*((?:[\w]+[\s*]+)+?\**)(mi_\w+)\(([^()]*(?:\([^()]*\)[^()]*)*)\)\s*(?:;|\{.*?^\})", re.M | re.S)
TYPE = re.compile(r"^(?:mi_decl_extension )?typedef\s.*?\b(mi_\w+)(?:\s*\([^;]*\))?\s*;", re.M | re.S)
SKIPPED = {"attributes of the functions, for the compiler"}
OPTION = re.compile(r"^ +(mi_option_\w+), +/\* +(\d+|-) +(\d+|-)  (.*?)  +(\S.*?) \*/$", re.M)
CPP = re.compile(r"^#(?:if|ifdef) .*__cplusplus", re.M)


@dataclasses.dataclass
class Item:
    section: str
    comment: str
    code: list = dataclasses.field(default_factory=list)  # (line, level or None)


def level_of(condition):
    if re.match(r"MI_API_LEVEL >= 3", condition):
        return 3
    return 2 if re.match(r"MI_API_LEVEL < 3", condition) else None


def items_of(text):
    """The items of a header in order; the first has the comment at the top."""
    items, section, levels, comment = [Item("", "")], "", [], None
    for line in text.splitlines():
        if comment is not None:
            comment.append(line)
        elif match := SECTION.match(line):
            section = match[1]
            items.append(Item(section, ""))
        elif line.startswith("/*"):
            comment = [line]
        else:
            if match := re.match(r"# *(if|ifdef|ifndef|elif|else|endif)\b\s*(.*)", line):
                word, condition = match.groups()
                if word == "endif":
                    levels.pop()
                elif word == "else":
                    levels[-1] = {2: 3, 3: 2}.get(levels[-1])
                elif word != "elif":
                    levels.append(level_of(condition))
            level = next((level for level in reversed(levels) if level), None)
            items[-1].code.append((line, level))
        if comment is not None and comment[-1].rstrip().endswith("*/"):
            items.append(Item(section, plain(comment)))
            comment = None
    return items


def plain(lines):
    """A comment without its marks and its indentation."""
    text = "\n".join(lines).strip()[2:-2].rstrip()
    first, *rest = text.split("\n")
    indents = [len(line) - len(line.lstrip()) for line in rest if line.strip()]
    indent = min(indents, default=0)
    return "\n".join([first.strip(), *(line[indent:].rstrip() for line in rest)])


def signature(kind, name, arguments):
    return f"{' '.join(kind.split())} {name}({' '.join(arguments.split())})".replace("* ", "*").replace("*", " *").replace("  ", " ").replace("* *", "**")


def functions_of(item):
    """(signature, name, level), and the code without them."""
    code = "\n".join(line for line, _ in item.code)
    levels = {}
    for line, level in item.code:
        for name in re.findall(r"\b(mi_\w+)\(", line):
            levels.setdefault(name, level)
    if not re.search(f"mi_decl_export|{INLINE}", code):
        return [], code
    stripped = ATTRIBUTES.sub("", re.sub(r"^#define.*(?:\\\n.*)*", "", code, flags=re.M))
    found = []
    for kind, name, arguments in PROTOTYPE.findall(stripped):
        if not re.search(r"\b(typedef|return|else)\b", kind):
            found.append((signature(kind.replace("static", "").replace("inline", ""), name, arguments), name, levels.get(name)))
    rest = PROTOTYPE.sub(lambda match: match[0] if re.search(r"\b(typedef|return|else)\b", match[1]) else "", stripped) if found else code
    if found:  # macros are a part of the rest again
        rest = rest + "\n" + "\n".join(match[0] for match in re.finditer(r"^#define.*(?:\\\n.*)*", code, re.M))
    return found, rest


def without_conditions(code):
    """What is left to show: nothing, if only conditionals are."""
    frame = r'^#ifdef __cplusplus\n|^#if defined\(__cplusplus\)\n(?:extern "C" \{|\})\n#endif\n|^#pragma once\n|^#(?:ifndef|define) MIMALLOC_(?:\w+_)?H\n|^ *#include .*\n'
    code = re.sub(frame, "", code + "\n", flags=re.M)
    for _ in range(4):  # conditionals around nothing, from the inside
        code = re.sub(r"^ *# *(?:if|ifdef|ifndef)\b.*\n(?:\s*# *(?:else|elif)\b.*\n)*\s*# *endif.*\n", "", code, flags=re.M)
    shown = re.sub(r"^ *# *(?:if|ifdef|ifndef|elif|else|endif)\b.*\n", "", code, flags=re.M)
    return re.sub(r"\n{3,}", "\n\n", code).strip("\n") if shown.strip() else ""


class Reference:
    """Makes reStructuredText.  `known`: the names of all functions of all headers."""

    def __init__(self, known):
        self.known, self.done = known, set()

    def text(self, comment):
        """Paragraphs, points ("- ") with lines that go on below them, and blocks of more indentation, which are shown as they are."""
        out, kind = [], None  # a list of (kind, lines)
        for line in comment.split("\n"):
            if not line.strip():
                kind = "literal and blank" if kind == "literal" else None
                continue
            if line.startswith("- "):
                new = "point"
            elif line.startswith("  "):
                new = "point" if kind == "point" else "literal"
            else:
                new = "text"
            if new == "literal" and kind == "literal and blank":
                out[-1][1].append("")
                kind = "literal"
            if new != kind or (new == "point" and line.startswith("- ")):
                out.append((new, []))
            out[-1][1].append(line)
            kind = new
        return "\n\n".join(self.block(*block) for block in out)

    def block(self, kind, lines):
        if kind == "literal":
            return ".. code-block:: text\n\n" + "\n".join("   " + line if line else "" for line in lines)
        if kind == "point":
            return "\n".join([f"- {self.line(lines[0][2:])}", *(f"  {self.line(line.strip())}" for line in lines[1:])])
        return "\n".join(self.line(line) for line in lines)

    def line(self, line):
        out = []
        for part in re.split(r"(`[^`]+`|\b_?mi_\w+\b|\bMI_\w+\b|\bMIMALLOC_\w+\b)", line):
            if part.startswith("`"):
                out.append(f"\\ ``{part.strip('`')}``\\ ")
            elif part in self.known:
                out.append(f"\\ :c:func:`{part}`\\ ")
            elif re.fullmatch(r"_?mi_\w+|MI_\w+|MIMALLOC_\w+", part):
                out.append(f"\\ ``{part}``\\ ")
            else:
                out.append(re.sub(r"([*|\\_])", r"\\\1", part))
        return "".join(out).strip()

    def options(self, code):
        rows = OPTION.findall(code)
        out = [".. list-table::", "   :header-rows: 1", "", "   * - variable, and constant", "     - level 2", "     - level 3",
               "     - meaning", "     - default"]
        for constant, two, three, meaning, default in rows:
            name = constant.removeprefix("mi_option_")
            out += [f"   * - ``MIMALLOC_{name.upper()}``, ``{constant}``", f"     - {two}", f"     - {three}", f"     - {self.line(meaning)}",
                    f"     - {default}"]
        return "\n".join(out)

    def signatures(self, functions):
        """(signatures, note) in the order of levels, of those that have not been shown yet."""
        notes = {None: "", 2: "Level 2 has this one; level 3 differs, see the header.", 3: "Only at level 3."}
        for level, note in notes.items():
            found = []
            for one, name, its in functions:
                if its == level and name not in self.done:
                    self.done.add(name)
                    found.append(one)
            if found:
                yield found, note

    def item(self, item):
        out, text = [], self.text(item.comment)
        functions, rest = functions_of(item)
        *head, last = re.split(r"\n\n(?!(?:- |   |\.\. ))", text) if functions and text else [text]
        groups = list(self.signatures(functions))
        if groups:
            out += head  # what is said of the whole section; the last paragraph, and what belongs to it, is about the functions
            text = last
        elif text:
            out.append(text)
        for found, note in groups:
            inside = "\n\n".join(part for part in (text, note) if part)
            text = ""
            out.append(".. c:function:: " + "\n                ".join(found) + "\n\n" + indented(inside))
        for name in dict.fromkeys(TYPE.findall(ATTRIBUTES.sub("", rest))):
            if name not in self.done:
                self.done.add(name)
                out.append(f".. c:type:: {name}")
        if OPTION.search(rest):
            out.append(self.options(rest))
        else:
            shown = without_conditions(rest)
            if shown:
                language = "cpp" if re.search(r"template|class |::|operator", shown) else "c"
                out.append(f".. code-block:: {language}\n\n{indented(shown)}")
        return "\n\n".join(out)

    def page(self, name, text):
        out = [f"{name}\n{'=' * len(name)}"]
        section = ""
        for item in items_of(text):
            if item.section in SKIPPED:
                continue
            if item.section != section:
                section = item.section
                title = section[0].upper() + section[1:]
                out.append(f"{title}\n{'-' * len(title)}")
            out.append(self.item(item))
        return "\n\n".join(part for part in out if part) + "\n"


def indented(text):
    return "\n".join("   " + line if line else "" for line in text.split("\n"))


def names_of(text):
    return [name for item in items_of(text) if item.section not in SKIPPED for _, name, _ in functions_of(item)[0]]
