"""What heap profiles say: flame graphs, folded stacks, differences, memory in use."""

import collections
import html
import json
import pathlib
import re

from . import files, output, pprof, symbols
from .errors import ToolError

TEMPLATE = pathlib.Path(__file__).resolve().parent / "data" / "flame.html"
FRAMES_SHOWN = 8    # of a stack in `leaks`
# The allocator's own frames, and what calls it for others, say nothing about a program.
OWN = ("malloc", "calloc", "realloc", "free", "memalign", "aligned_alloc", "posix_memalign", "reallocarray", "valloc", "pvalloc",
       "operator new", "strdup", "strndup", "__libc_malloc", "__libc_calloc", "__libc_realloc")


def load(path, with_symbols):
    profile = pprof.read(path)
    return symbols.symbolise(profile) if with_symbols else profile


def _is_own(name):
    return name.startswith(("mi_", "_mi_")) or name.split("(")[0] in OWN or name.startswith("operator new")


def stack(sample):
    """Names of functions, from the outermost in, without the allocator's own at the end."""
    names = [name for location in reversed(sample.locations) for name in symbols.names(location)]
    while len(names) > 1 and _is_own(names[-1]):
        names.pop()
    return tuple(names) or ("?",)


def stacks(profile, index):
    """{stack: amount}, without those that have nothing."""
    total = collections.Counter()
    for sample in profile.samples:
        total[stack(sample)] += sample.values[index]
    return {names: n for names, n in total.items() if n != 0}


def amount(n, unit):
    return output.size(n) if unit == "bytes" else output.count(n)


# ---- folded ---------------------------------------------------------------------------------------------------------

def folded(file, sample_type, with_symbols, as_json):
    profile = load(file, with_symbols)
    found = sorted(stacks(profile, profile.index(sample_type)).items())
    if as_json:
        output.print_json([{"stack": list(names), "amount": n} for names, n in found])
        return
    for names, n in found:
        print(";".join(name.replace(";", ":") for name in names), n)


# ---- flame graph ----------------------------------------------------------------------------------------------------

def tree(found):
    """{"n": name, "v": amount, "c": children}, as the page has it."""
    root = {"n": "all", "v": 0, "c": {}}
    for names, n in found.items():
        root["v"] += n
        node = root
        for name in names:
            node = node["c"].setdefault(name, {"n": name, "v": 0, "c": {}})
            node["v"] += n

    todo = [root]
    while todo:
        node = todo.pop()
        node["c"] = sorted(node["c"].values(), key=lambda child: child["n"])
        todo.extend(node["c"])
    return root


def flame_page(profile, index):
    name, unit = profile.types[index]
    found = {names: n for names, n in stacks(profile, index).items() if n > 0}
    title = output.printable(f"{name}: {amount(sum(found.values()), unit)} in {pathlib.Path(profile.path).name}")
    parts = {"TITLE": html.escape(title), "UNIT": _in_script(json.dumps(unit)), "DATA": _in_script(_json_of_tree(tree(found)))}
    # In one pass: what a profile says may look like one of the names.
    return re.sub(f"@({'|'.join(parts)})@", lambda match: parts[match[1]], TEMPLATE.read_text(encoding="utf-8"))


def _in_script(text):
    """JSON without `<`, which could end the script, or begin a comment that hides its end."""
    return text.replace("<", "\\u003c")


def _json_of_tree(root):
    """Without recursion: stacks may be deeper than Python's."""
    parts, todo = [], [root]
    while todo:
        node = todo.pop()
        if isinstance(node, str):
            parts.append(node)
            continue
        parts.append(f'{{"n":{json.dumps(node["n"])},"v":{node["v"]},"c":[')
        todo.append("]}")
        for i, child in enumerate(reversed(node["c"])):
            todo.append(child)
            if i + 1 < len(node["c"]):
                todo.append(",")
    return "".join(parts)


def flame(file, target, sample_type, with_symbols):
    profile = load(file, with_symbols)
    page = flame_page(profile, profile.index(sample_type))
    path = pathlib.Path(target) if target else pathlib.Path(file).with_suffix(".html")
    if path.exists() and path.samefile(file):
        raise ToolError(f"{path} is the profile itself: name another file with -o.")
    try:
        files.write(path, page)
    except OSError as error:
        raise ToolError(f"{path} cannot be written: {error.strerror}.") from error
    output.print_path(path)


# ---- difference -----------------------------------------------------------------------------------------------------

def by_function(found):
    """{name: (of the function itself, with what it calls)}."""
    result = collections.defaultdict(lambda: [0, 0])
    for names, n in found.items():
        result[names[-1]][0] += n
        for name in set(names):
            result[name][1] += n
    return result


def diff(before, after, n_rows, sample_type, with_symbols, as_json):
    old, new = load(before, with_symbols), load(after, with_symbols)
    index = new.index(sample_type)
    name, unit = new.types[index]
    a, b = (by_function(stacks(p, p.index(name))) for p in (old, new))
    none = (0, 0)
    changes = sorted(((b.get(f, none)[0] - a.get(f, none)[0], b.get(f, none)[1] - a.get(f, none)[1], f) for f in {*a, *b}),
                     key=lambda change: (-abs(change[0]), -abs(change[1]), change[2]))
    changes = [change for change in changes if change[0] or change[1]]
    if as_json:
        output.print_json({"type": name, "unit": unit,
                           "functions": [{"function": f, "self": own, "total": total} for own, total, f in changes]})
        return
    if not changes:
        print(f"The profiles do not differ in {name}.")
        return
    from rich.markup import escape
    output.print_table([("SELF", True), ("TOTAL", True), ("FUNCTION", False)],
                       ((_signed(own, unit), _signed(total, unit), escape(f)) for own, total, f in changes[:n_rows]),
                       f"{name}, second profile minus first")
    if len(changes) > n_rows:
        print(f"... and {len(changes) - n_rows} more; --rows shows more.")


def _signed(n, unit):
    colour = "red" if n > 0 else "green"
    return f"[{colour}]{'+' if n > 0 else ''}{amount(n, unit)}[/{colour}]" if n else "0"


# ---- leaks ----------------------------------------------------------------------------------------------------------

def leaks(file, n_rows, with_symbols, as_json):
    profile = load(file, with_symbols)
    if not profile.has("inuse_space"):
        raise ToolError(f"{file} does not say what is in use: it has {', '.join(name for name, _ in profile.types)}.")
    space = stacks(profile, profile.index("inuse_space"))
    objects = stacks(profile, profile.index("inuse_objects")) if profile.has("inuse_objects") else {}
    found = sorted(((n, objects.get(names), names) for names, n in space.items()), key=lambda row: (-row[0], row[2]))
    total = sum(n for n, _, _ in found)
    if as_json:
        output.print_json({"bytes": total, "stacks": [{"bytes": n, "blocks": blocks, "stack": list(reversed(names))}
                                                      for n, blocks, names in found]})
        return
    if not found:
        print("Nothing is in use.")
        return
    screen = output.console()
    screen.print(f"[bold]{output.size(total)}[/bold] in use, from {len(found)} stack{'s' if len(found) > 1 else ''}")
    for n, blocks, names in found[:n_rows]:
        screen.print(f"\n[bold]{output.size(n)}[/bold] in {output.count(blocks)} blocks ({n / total:.0%})")
        for name in list(reversed(names))[:FRAMES_SHOWN]:
            screen.print("    " + name, markup=False)
        if len(names) > FRAMES_SHOWN:
            screen.print(f"    ... {len(names) - FRAMES_SHOWN} more")
    if len(found) > n_rows:
        screen.print(f"\n... and {len(found) - n_rows} more stacks; --rows shows more.")
