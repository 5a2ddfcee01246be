#!/usr/bin/env python3
"""Proves: the pages and charts of docs/benchmarks and the figures of README.md were made from docs/benchmarks/results.json.

Warns when these results are old. What differs is made again by `make bench-publish`."""

import pathlib
import sys

if sys.version_info < (3, 11):
    print("SKIP bench-published: needs Python 3.11")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))

from suite.publish import Published  # noqa: E402


def main():
    published = Published(ROOT)
    differences = published.differences()
    for text in differences:
        print(f"FAIL {text.replace(f'{ROOT}/', '')}")
    if not differences:
        for text in published.warnings():
            print(f"WARNING {text}")
        print(f"all that is published is made from {published.file.relative_to(ROOT)}")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
