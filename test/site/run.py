#!/usr/bin/env python3
"""Builds the documentation site and checks it, for scripts/run-tests.py: run.py site | site-browser.

The results are those of four tests, in build/release/Testing/results-PART.xml: site-build, site-check (links, HTML, reference),
site-check-self-test, and with site-browser also site-browser (every page at two widths, and the search)."""

import pathlib
import subprocess
import sys
import xml.etree.ElementTree as tree

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SITE = ROOT / "build/site"
HERE = pathlib.Path("test/site")

TESTS = {"site-build": ["docs/site/build.py", SITE], "site-check-self-test": [HERE / "check.py", "--self-test"],
         "site-check": [HERE / "check.py", SITE]}
BROWSER = {"site-browser": [HERE / "browser.py", SITE]}


def run(suite, name, command):
    result = subprocess.run([sys.executable, *command], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                            errors="replace", timeout=1200)
    status = {0: "run", 77: "notrun"}.get(result.returncode, "fail")
    case = tree.SubElement(suite, "testcase", name=name, status=status)
    if status == "fail":
        tree.SubElement(case, "failure", message=f"exit status {result.returncode}")
    if status == "notrun":
        tree.SubElement(case, "skipped", message="SKIP_RETURN_CODE=77")
    tree.SubElement(case, "system-out").text = result.stdout
    print(f"{name}: {status}\n{result.stdout if status != 'run' else ''}", flush=True)
    return status


def main():
    part = sys.argv[1]
    suite = tree.Element("testsuite")
    for name, command in {**TESTS, **(BROWSER if part == "site-browser" else {})}.items():
        if run(suite, name, command) != "run" and name == "site-build":
            break
    path = ROOT / f"build/release/Testing/results-{part}.xml"
    path.parent.mkdir(parents=True, exist_ok=True)
    tree.ElementTree(suite).write(path)


if __name__ == "__main__":
    main()
