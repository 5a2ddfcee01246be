#!/usr/bin/env python3
"""Writes docs/design/structure.md, a drawing of the layers and of the units in each, and docs/design/invariants.md, an index of
the invariants, from the sources.

--check writes nothing, and fails if the pages are not what the sources say."""

import argparse
import pathlib
import sys

from invariants import Invariants
from units import LAYERS, Units, reduced

HEAD = """# Structure

A unit is `foo.h` with `foo.c`. An arrow leads from a unit or layer to one that it uses; arrows that follow from others are left
out. `scripts/draw-structure.py` makes this page from the sources, and `scripts/check-layers.py` checks that there are no circles.
"""
RESERVED = {"call", "class", "click", "default", "end", "graph", "style", "subgraph"}  # words of Mermaid


def node(name):
    return f"{name}_[{name}]" if name in RESERVED else name


def drawing(graph):
    """A graph, {name: names}, in the language of Mermaid."""
    lines = ["```mermaid", "graph TD"]
    used = {name for names in graph.values() for name in names}
    for name, names in graph.items():
        if names:
            lines.append(f"  {node(name)} --> {' & '.join(map(node, names))}")
        elif name not in used:
            lines.append(f"  {node(name)}")
    return "\n".join([*lines, "```\n"])


def structure(units):
    layers = [layer for layer in reversed(LAYERS) if any(unit[0] == layer for unit in units.files)]
    below = {layer: [other for other in layers if other != layer and any(
        used[0] == other for unit in units.files if unit[0] == layer for used in units.uses[unit])] for layer in layers}
    rows = ["| layer | units | lines, about | uses |", "|---|---|---|---|"]
    total = 0
    for layer in layers:
        n_lines = sum(source.n_lines for source in units.sources if source.layer == layer)
        n_units = sum(unit[0] == layer for unit in units.files)
        total += n_lines
        rows.append(f"| [{layer}]({layer}.md) | {n_units} | {round(n_lines, -2)} | {', '.join(below[layer])} |")
    rows.append(f"| all | {len(units.files)} | {round(total, -2)} | |\n")
    parts = [HEAD, drawing(reduced(below)), "\n".join(rows)]
    for layer in layers:
        graph = {unit[1]: [used[1] for used in after] for unit, after in reduced(units.layer(layer)).items()}
        parts += [f"## {layer}\n", drawing(graph)]
    return "\n".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    root = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--root", type=pathlib.Path, default=root)
    args = parser.parse_args()
    pages = {"structure.md": structure(Units(args.root)), "invariants.md": Invariants(args.root).index()}
    status = 0
    for name, text in pages.items():
        path = args.root / "docs/design" / name
        if not args.check:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            print(f"docs/design/{name} is not what the sources say: run python3 scripts/draw-structure.py")
            status = 1
    sys.exit(status)


if __name__ == "__main__":
    main()
