"""Pictures from the drawings in the documents, which are written in Mermaid's language: `graph` by dot, `sequenceDiagram` by mscgen.
Only what the documents use of that language is known; anything else is an error."""

import re
import subprocess

ARROW = re.compile(r'\s+--(?:\s+(?:"([^"]*)"|([^"\s-][^-]*?))\s+--)?>\s+')
NODE = re.compile(r'(\w+)(?:\["?(.*?)"?\])?$')


class Unknown(Exception):
    """The drawing uses something that is not supported here."""


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def graph_as_dot(lines, direction):
    """`lines`: what follows `graph TD`."""
    labels, edges = {}, []

    def nodes_of(text):
        names = []
        for part in text.split(" & "):
            match = NODE.match(part.strip())
            if not match:
                raise Unknown(text)
            name, label = match.groups()
            if label or name not in labels:
                labels[name] = label or name
            names.append(name)
        return names

    for line in lines:
        parts = ARROW.split(line.strip())  # nodes, two labels of which one is None, nodes, ...
        before = nodes_of(parts[0])
        for i in range(1, len(parts), 3):
            after = nodes_of(parts[i + 2])
            edges += [(a, b, parts[i] or parts[i + 1] or "") for a in before for b in after]
            before = after
    body = [f"{quoted(name)} [label={quoted(label)}];" for name, label in labels.items()]
    body += [f"{quoted(a)} -> {quoted(b)} [label={quoted(label)}];" for a, b, label in edges]
    return (f"digraph {{ rankdir={'LR' if direction == 'LR' else 'TB'}; bgcolor=transparent; nodesep=0.25; ranksep=0.4;\n"
            'node [shape=box style=rounded fontname="sans" fontsize=13 height=0.35 margin="0.12,0.05"];\n'
            'edge [fontname="sans" fontsize=12 arrowsize=0.7];\n' + "\n".join(body) + "\n}")


def sequence_as_msc(lines):
    names, steps = {}, []
    for line in (line.strip() for line in lines):
        if match := re.fullmatch(r"participant (\w+) as (.*)", line):
            names[match[1]] = match[2]
        elif match := re.fullmatch(r"(\w+)->>(\w+): (.*)", line):
            steps.append(f"{match[1]}=>{match[2]} [label={quoted(match[3])}];")
        elif match := re.fullmatch(r"Note over (\w+),(\w+): (.*)", line):
            steps.append(f"{match[1]} note {match[2]} [label={quoted(match[3])}];")
        else:
            raise Unknown(line)
    head = ", ".join(f"{name} [label={quoted(text)}]" for name, text in names.items())
    return "msc { wordwraparcs=on, width=640;\n" + head + ";\n" + "\n".join(steps) + "\n}\n"


def svg(text):
    """The HTML of one drawing."""
    lines = [line for line in text.splitlines() if line.strip()]
    head = lines[0].split()
    if head[0] == "graph" and len(head) == 2:
        picture = subprocess.run(["dot", "-Tsvg"], input=graph_as_dot(lines[1:], head[1]), text=True, capture_output=True, check=True).stdout
        kind = ""
    elif head == ["sequenceDiagram"]:
        picture = subprocess.run(["mscgen", "-T", "svg", "-i", "-", "-o", "-"], input=sequence_as_msc(lines[1:]), text=True,
                                 capture_output=True, check=True).stdout
        kind = " sequence"
    else:
        raise Unknown(lines[0])
    picture = picture[picture.index("<svg"):]
    picture = re.sub(r"<!--.*?-->\n?", "", picture, flags=re.S)
    picture = re.sub(r"<title>.*?</title>\n?", "", picture)
    picture = re.sub(r' id="(?:node|edge|graph)\d+"', "", picture)
    width, height = (float(value) for value in re.search(r'viewBox="0(?:\.00)? 0(?:\.00)? ([\d.]+) ([\d.]+)"', picture).groups())
    # Points of graphviz are pixels here.  It shrinks to the width of the page, but not until it cannot be read.
    picture = re.sub(r'^<svg width="[^"]*"\s+height="[^"]*"', f'<svg style="width:{width:.0f}px;min-width:{min(width, max(280, width * 0.8)):.0f}px"', picture)
    return f'<figure class="diagram{kind}">\n{picture.strip()}\n</figure>'
