"""Parsers, converters and typesetters."""

import json

from registry import program


def rows(n):
    return [{"id": i, "name": f"name{i * 7919 % 1009}", "tags": [f"t{j}" for j in range(i % 7)], "value": i * i / 8, "note": "é&<" * (i % 5)}
            for i in range(n)]


@program("jq", quick=True)
def jq(session):
    """jq: groups, paths, strings of a file of 8,000 objects"""
    (session.work / "in.json").write_text(json.dumps(rows(8000)), encoding="utf-8")
    query = ('[.[] | select(.id % 3 == 0)] | group_by(.name) | map({name: .[0].name, n: length, sum: (map(.value) | add), '
             'tags: ([.[].tags[]] | unique | join("-")), note: (.[0].note | @base64)}) | sort_by(-.n, .name)[:400], ([paths] | length)')
    argv = ["jq", "-c", query, session.work / "in.json"]
    session.both(argv)
    session.served(argv, least_pages=50)


def write_xml(path, n):
    items = "".join(f'<item id="i{row["id"]}" kind="{row["name"]}"><value>{row["value"]}</value>'
                    f'{"".join(f"<tag>{tag}</tag>" for tag in row["tags"])}<note>{"&lt;&#233;" * (row["id"] % 5)}</note></item>\n' for row in rows(n))
    path.write_text(f'<?xml version="1.0"?>\n<!DOCTYPE list [<!ATTLIST item id ID #IMPLIED>]>\n<list xmlns:x="urn:x">\n{items}</list>\n', encoding="utf-8")
    return path


@program("libxml2-utils:xmllint", quick=True)
def xmllint(session):
    """xmllint: parses, formats, validates and searches 12,000 elements, also as a stream"""
    source = write_xml(session.work / "in.xml", 12000)
    for options in (["--format"], ["--c14n"], ["--xpath", "sum(//item[count(tag) > 3]/value)"], ["--stream", "--noout", "--nonet"],
                    ["--valid", "--noout", "--nowarning"], ["--encode", "UTF-16", "--compress"]):
        session.both(["sh", "-c", 'xmllint "$@" | sha256sum', "sh", *options, source])
    session.served(["xmllint", "--format", "--output", "out.xml", source], least_pages=100)


STYLE = """<x:stylesheet version="1.0" xmlns:x="http://www.w3.org/1999/XSL/Transform"><x:key name="k" match="item" use="@kind"/>
<x:output method="html" indent="yes"/><x:template match="/list"><html><x:for-each select="item[generate-id() = generate-id(key('k', @kind)[1])]">
<x:sort select="@kind"/><h1><x:value-of select="@kind"/> <x:value-of select="sum(key('k', @kind)/value)"/></h1>
<x:for-each select="key('k', @kind)"><p><x:value-of select="concat(@id, ':', count(tag), translate(note, '&lt;', '['))"/></p></x:for-each>
</x:for-each></html></x:template></x:stylesheet>"""


@program("xsltproc")
def xsltproc(session):
    """xsltproc: groups and sorts 6,000 elements into a page"""
    (session.work / "style.xsl").write_text(STYLE, encoding="utf-8")
    argv = ["xsltproc", session.work / "style.xsl", write_xml(session.work / "in.xml", 6000)]
    session.both(argv)
    session.served(argv, least_pages=100)


def write_markdown(path, n):
    path.write_text("# Title\n\n" + "".join(
        f"## Section {i}\n\nText with *emphasis {i}*, `code`, [a link](https://example.org/{i}) and a note[^{i}].\n\n"
        f"| a | b |\n|---|---|\n| {i} | {i * i} |\n\n- one\n- two\n    1. three\n\n```python\nprint({i} + 1)\n```\n\n[^{i}]: The note {i}.\n\n"
        for i in range(n)), encoding="utf-8")
    return path


@program("pandoc")
def pandoc(session):
    """pandoc: Markdown to HTML, to a document and back; its own runtime, and Lua within"""
    source = write_markdown(session.work / "in.md", 60)
    script = (f"pandoc -s --toc --metadata title=t {source} -o out.html && sha256sum out.html && pandoc {source} -o out.odt && "
              "pandoc out.odt -t gfm | sha256sum && pandoc -t json out.html | sha256sum")
    session.both(["sh", "-c", script])
    session.served(["pandoc", "-s", source, "-o", "out.html"], least_pages=10)


@program("groff:grops", "groff-base:groff")
def groff(session):
    """groff: tables and macros to PostScript and to text"""
    source = session.work / "in.ms"
    source.write_text(".TL\nTitle\n" + "".join(
        f".NH 1\nSection {i}\n.PP\n" + f"Words of section {i} that fill some lines and are broken and hyphenated considerably. " * 12 +
        f"\n.TS\nbox; l r.\na\t{i}\nb\t{i * i}\n.TE\n.IP \\(bu\nitem \\fBbold\\fP\n" for i in range(80)), encoding="utf-8")
    script = f"groff -t -ms -Tps {source} | grep -v '^%%' | sha256sum; groff -t -ms -Tutf8 {source} | sha256sum"
    session.both(["sh", "-c", script])
    session.served(["groff", "-t", "-ms", "-Tutf8", source], least_pages=30, least_processes=2)


@program("graphviz:dot")
def graphviz(session):
    """Graphviz: layout of 150 nodes, to SVG and to a picture"""
    source = session.work / "in.dot"
    source.write_text("digraph g {\n" + "".join(f"n{i} [label=\"node {i}\"]; n{i} -> n{i * 7 % 150}; n{i} -> n{(i * i + 3) % 150};\n"
                                                  for i in range(150)) + "}\n", encoding="utf-8")
    session.both(["sh", "-c", f"dot -Tsvg {source} | sha256sum; neato -Tplain -Gmaxiter=40 {source} | sha256sum; dot -Tpng {source} | sha256sum"])
    session.served(["dot", "-Tsvg", "-o", "out.svg", source], least_pages=50)


@program("aspell", "aspell-en")
def aspell(session):
    """aspell: suggestions for 600 misspelled words"""
    words = "helo wrld recieve seperate definately occured untill begining acommodate tommorow".split()
    text = "\n".join("^" + words[i % 10] + "xyzabcdef"[i % 9] * (i % 3) for i in range(600)) + "\n"
    argv = ["aspell", "-a", "-l", "en"]
    session.both(argv, stdin=text)
    session.served(argv, stdin=text, least_pages=30)
