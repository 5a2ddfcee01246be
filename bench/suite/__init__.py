"""Measures allocators on the programs of tests.toml, and reports what it found.

cost      what a run costs
measure   one run of one program
table     the tests and the allocators
rounds    many runs: in which order, and what a run has to agree with
results   what was measured, and its file
scores    ratios, geometric means, scores, the difference of two files, curves over threads
goals     what this project wants to reach
machine   where it was measured, and which versions
terminal  tables and the progress bar, with rich
session   the commands that measure
plot, charts, overview    with matplotlib
report    the page, with jinja2
__main__  the command line, with click

The first eight need no packages.
"""
