"""Measures allocators on the programs of tests.toml, and reports what it found.

cost      what a run costs
measure   one run of one program
peers     which files of a directory are allocators
table     the tests and the allocators
rounds    many runs: in which order, and what a run has to agree with
landscape what a pair of calls costs, for patterns of calls and sizes of blocks
counting  counts it, with the program of bench/landscape
callgrind what callgrind has counted
bugs      what allocators detect of the mistakes in test/bugs
results   what was measured, and its file
scores    ratios, geometric means, scores, the difference of two files, curves over threads
goals     what this project wants to reach
machine   where it was measured, and which versions
figures   tables of what was measured
pages     the texts of docs/benchmarks and of the README's block
landscape_page    that of the landscape
publish   writes these, and says what differs from the file of results
terminal  tables and the progress bar, with rich
session   the commands that measure
plot, charts, overview, heat    with matplotlib
report    the page, with jinja2
__main__  the command line, with click

What stands above `terminal` needs no packages.
"""
