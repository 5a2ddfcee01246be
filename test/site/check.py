#!/usr/bin/env python3
"""Checks the built site without a browser:

  link        a relative link leads to a file of the site, and its #anchor to an element there
  outside     pages load nothing from elsewhere; addresses that links lead to are listed, not opened
  html        each page has a language, a title and one h1, closes what it opens, and has no id twice
  reference   each function of the public headers, as the preprocessor and test/api/table.csv see them, has an entry
  search      the index of the search has the functions

    check.py SITE | --self-test"""

import argparse
import collections
import csv
import html.parser
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
OPTIONAL_END = {"p", "li", "dt", "dd", "tr", "td", "th", "thead", "tbody", "option"}
LOADS = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("object", "data")}


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.loads, self.wrong = [], [], []
        self.ids, self.opened, self.counts = collections.Counter(), [], collections.Counter()
        self.lang = ""
        self.feed(text)
        self.close()
        self.wrong += [f"<{tag}> is not closed" for tag in self.opened if tag not in OPTIONAL_END]
        self.wrong += [f"the id {name} is there {n} times" for name, n in self.ids.items() if n > 1]
        self.wrong += [f"{self.counts[tag]} <{tag}>" for tag in ("title", "h1") if self.counts[tag] != 1]
        if not self.lang:
            self.wrong.append("no language")

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        in_svg = "svg" in self.opened
        if not in_svg:
            self.counts[tag] += 1
        if tag == "html":
            self.lang = attrs.get("lang") or ""
        if attrs.get("id"):
            self.ids[attrs["id"]] += 1
        for kind, name in LOADS:
            if tag == kind and attrs.get(name):
                self.loads.append(attrs[name])
        if tag == "a" and attrs.get("href"):
            self.links.append(attrs["href"])
        if tag not in VOID:
            self.opened.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.opened.pop()

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        if tag not in self.opened:
            self.wrong.append(f"</{tag}> closes nothing")
            return
        while (last := self.opened.pop()) != tag:
            if last not in OPTIONAL_END:
                self.wrong.append(f"</{tag}> closes <{last}>")


class Site:
    def __init__(self, root):
        self.root, self.wrong, self.outside = root, [], set()
        self.pages = {path.relative_to(root).as_posix(): Page(path.read_text(encoding="utf-8")) for path in sorted(root.rglob("*.html"))}

    def target(self, name, link):
        """What a link leads to is missing: why.  "" otherwise."""
        parts = urllib.parse.urlsplit(link)
        path = urllib.parse.unquote(parts.path)
        found = (pathlib.PurePosixPath(name).parent / path).as_posix() if path else name
        file = (self.root / found).resolve()
        if not file.is_file():
            return "leads nowhere"
        page = self.pages.get(file.relative_to(self.root.resolve()).as_posix()) if file.is_relative_to(self.root.resolve()) else None
        anchor = urllib.parse.unquote(parts.fragment)
        if anchor and page and anchor not in page.ids and anchor != "top":
            return "there is no such anchor"
        return "" if page or path.startswith(("_", "..", ".")) or not path.endswith(".html") else "leads out of the site"

    def check_page(self, name, page):
        self.wrong += [("html", name, text) for text in page.wrong if (name, text) != ("search.html", "0 <h1>")]  # the theme's own
        for link in page.loads:
            if re.match(r"(?:[a-z]+:)?//|/", link):
                self.wrong.append(("outside", name, f"loads {link}"))
            elif not link.startswith("data:") and (why := self.target(name, link)):
                self.wrong.append(("link", name, f"{link} {why}"))
        for link in page.links:
            if re.match(r"[a-z]+:", link):
                self.outside.add(link)
            elif link != "#" and (why := self.target(name, link)):
                self.wrong.append(("link", name, f"{link} {why}"))

    def check_functions(self, functions):
        entries = set().union(*(page.ids for name, page in self.pages.items() if name.startswith("reference/")), set())
        for function in sorted(functions):
            if f"c.{function}" not in entries:
                self.wrong.append(("reference", "reference", f"{function} has no entry"))
        index = (self.root / "searchindex.js").read_text(encoding="utf-8") if (self.root / "searchindex.js").exists() else ""
        for function in sorted(functions):
            if not re.search(rf'\b{function}\b', index):
                self.wrong.append(("search", "searchindex.js", f"{function} is not there"))

    def check(self, functions):
        for name, page in self.pages.items():
            self.check_page(name, page)
        self.check_functions(functions)
        return self.wrong


def functions_of_headers():
    """As the preprocessor sees them at both levels, and the table of the interface."""
    found = set()
    for header in sorted((ROOT / "include").glob("*.h")):
        if header.name in ("mimalloc-override.h", "mimalloc-new-delete.h"):
            continue
        for level in (2, 3):
            text = subprocess.run(["cc", "-E", "-P", f"-DMI_API_LEVEL={level}", "-x", "c", header], capture_output=True, text=True,
                                  check=True).stdout
            found |= set(re.findall(r"(?<!typedef)\b(mi_\w+)\s*\((?=[^;{]*\)[^;{]*[;{])", re.sub(r"typedef[^;]*;|=[^;]*;|return[^;]*;", ";", text)))
    with open(ROOT / "test/api/table.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["kind"] == "function" and row["name"].startswith("mi_") and row["header"].startswith("mimalloc"):
                found.add(row["name"])
    return found


GOOD = {
    "index.html": '<html lang="en"><title>t</title><body><h1 id="a">A</h1><a href="reference/x.html#c.mi_f">f</a><a href="#a">a</a>'
                  '<p>one<p>two<img src="x.png"></body></html>',
    "reference/x.html": '<html lang="en"><title>t</title><h1>X</h1><p id="c.mi_f">f<br></p><a href="https://x.org">x</a></html>',
    "searchindex.js": "mi_f", "x.png": "",
}
BAD = [
    ("link", {"index.html": GOOD["index.html"].replace("reference/x", "reference/y")}),
    ("link", {"index.html": GOOD["index.html"].replace("c.mi_f", "c.mi_g")}),
    ("link", {"index.html": GOOD["index.html"].replace("x.png", "y.png")}),
    ("outside", {"index.html": GOOD["index.html"].replace("x.png", "https://x.org/x.png")}),
    ("outside", {"index.html": GOOD["index.html"].replace("x.png", "/x.png")}),
    ("html", {"index.html": GOOD["index.html"].replace("</h1>", "")}),
    ("html", {"index.html": GOOD["index.html"].replace("<p>one", '<p id="a">one')}),
    ("html", {"index.html": GOOD["index.html"].replace(' lang="en"', "")}),
    ("reference", {"reference/x.html": GOOD["reference/x.html"].replace("c.mi_f", "c.mi_g")}),
    ("search", {"searchindex.js": "mi_ff"}),
]


def self_test():
    def rules(changes):
        with tempfile.TemporaryDirectory() as root:
            for name, text in {**GOOD, **changes}.items():
                path = pathlib.Path(root) / name
                path.parent.mkdir(exist_ok=True)
                path.write_text(text, encoding="utf-8")
            return {rule for rule, _, _ in Site(pathlib.Path(root)).check({"mi_f"})}
    wrong = [f"{rule}: {sorted(rules(changes))}" for rule, changes in BAD if rule not in rules(changes)]
    wrong += [f"good: {sorted(rules({}))}"] if rules({}) else []
    print(f"self-test: {len(BAD) + 1} trees, {len(wrong)} wrong", *wrong, sep="\n")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("site", nargs="?", type=pathlib.Path)
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    if args.self_test:
        return self_test()
    functions = functions_of_headers()
    site = Site(args.site)
    wrong = site.check(functions)
    print(f"{len(site.pages)} pages, {len(functions)} functions, {len(wrong)} rules broken; {len(site.outside)} addresses elsewhere:")
    print("\n".join(f"  {address}" for address in sorted(site.outside)))
    print("\n".join(f"{rule}: {where}: {text}" for rule, where, text in wrong[:60]))
    return 1 if wrong or len(functions) < 150 else 0


if __name__ == "__main__":
    sys.exit(main())
