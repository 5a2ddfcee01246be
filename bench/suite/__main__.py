"""The command line: python -m suite COMMAND, or bench/bench.py COMMAND."""

import functools
import pathlib
import sys

import click

from . import counting, machine, results, session, table, terminal
from . import latency as timing
from .landscape import PATTERNS, SIZES, size_from, size_text
from .rounds import powers_of_two

MAX_THREADS = 64  # unless asked for; as many as every program takes
TABLE = pathlib.Path(__file__).resolve().parent.parent / "tests.toml"


class Words(click.ParamType):
    name = "A,B"

    def convert(self, value, param, ctx):
        return value if isinstance(value, list) else [word for word in value.split(",") if word]


class Sizes(click.ParamType):
    name = "A,B"

    def convert(self, value, param, ctx):
        if isinstance(value, list):
            return value
        sizes = {word: size_from(word) for word in value.split(",")}
        for word, size in sizes.items():
            if size is None:
                self.fail(f"'{word}' is not a size from 4 to 64M, such as 64, 4K or 1M", param, ctx)
        return sorted(set(sizes.values()))


class Named(click.ParamType):
    name = "NAME=LIB"

    def convert(self, value, param, ctx):
        name, equals, library = value.partition("=")
        if not (name and equals and library):
            self.fail(f"'{value}' is not NAME=LIB", param, ctx)
        return name, library


def measuring(rounds):
    """The options of the commands that measure."""
    options = [
        click.option("--programs", type=click.Path(), metavar="DIR", required=True, help="where the built programs are"),
        click.option("--table", "table_file", type=click.Path(), default=TABLE, metavar="FILE",
                     help="other tests than those of tests.toml; scripts are in real/ and traces/ beside it"),
        click.option("--tests", type=Words(), default="", help="only these; groups: programs, real, all, traces, traces-known, traces-unseen"),
        click.option("--rounds", type=click.IntRange(1), metavar="N",
                     help=f"measured runs of each ({rounds}; 2 if quick)"),
        click.option("--quick", is_flag=True, help="about a tenth of the work"),
        click.option("--timeout", type=click.FloatRange(0, min_open=True), default=120, metavar="S",
                     help="seconds until a run is a FAIL (120)"),
    ]

    def decorate(function):
        @functools.wraps(function)
        def wrapped(**given):
            given["rounds"] = given["rounds"] or (2 if given["quick"] else rounds)
            function(**given)
        return allocators()(all_of(options)(kept()(wrapped)))
    return decorate


def all_of(options):
    return lambda function: functools.reduce(lambda f, option: option(f), reversed(options), function)


def allocators():
    """The options that say which."""
    return all_of([
        click.option("--alloc", type=Named(), multiple=True, help="an allocator; the first is ours"),
        click.option("--peers", type=click.Path(), metavar="DIR", help="each DIR/NAME.so or DIR/libNAME.so is an allocator too"),
        click.option("--allocs", type=Words(), default="", help="only these; 'glibc' is the system's"),
    ])


def kept():
    """The options of what is kept."""
    return all_of([
        click.option("--json", "file", type=click.Path(dir_okay=False), metavar="FILE", help="where to keep what was measured"),
        click.option("--from-tree", is_flag=True, help="our libraries were built from this tree: FILE names its commit"),
        click.option("--note", default="", metavar="TEXT", help="how it is run, for FILE and what is made of it"),
    ])


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
def main():
    """Measures allocators on the programs of tests.toml. See bench/README.md."""


@main.command()
@measuring(rounds=5)
@click.option("--threads", type=click.IntRange(1, 256), metavar="N",
              help="threads of the parallel tests (the number of cores)")
def run(threads, table_file, tests, **given):
    """Measures CPU time, wall time, peak memory and page faults. Exit code 1: something is a FAIL."""
    chosen = table.choose_tests(table.load(table_file), tests)
    threads = threads or min(machine.cores(), MAX_THREADS)
    section = session.measure("run", [(test, threads) for test in chosen], threads, table_file, **given)
    terminal.show_summary(section)
    finish(section)


@main.command()
@measuring(rounds=3)
@click.option("--max-threads", type=click.IntRange(1, 256), metavar="N", help="1, 2, 4, ... N (the number of cores)")
def scaling(max_threads, table_file, tests, **given):
    """Measures how the CPU time per thread grows with the number of threads."""
    known = {name: test for name, test in table.load(table_file).items() if test.scaling}
    chosen = table.choose_tests(known, tests)
    most = max_threads or min(machine.cores(), MAX_THREADS)
    steps = [(test, threads) for test in chosen for threads in powers_of_two(most)]
    section = session.measure("scaling", steps, most, table_file, **given)
    terminal.show_scaling(section)
    finish(section)


@main.command()
@measuring(rounds=5)
def modes(table_file, tests, **given):
    """Measures what builds of the library cost: each --alloc is one, the first is what the others are compared to."""
    if len(given["alloc"]) < 2:
        raise table.UsageError("modes needs two builds: --alloc release=LIB --alloc secure=LIB ...")
    given["allocs"] = given["allocs"] or [name for name, _ in given["alloc"]]
    chosen = table.choose_tests(table.load(table_file), tests)
    threads = min(machine.cores(), MAX_THREADS)
    section = session.measure("modes", [(test, threads) for test in chosen], threads, table_file, **given)
    terminal.show_modes(section)
    finish(section)


@main.command()
@allocators()
@click.option("--sizes", type=Sizes(), default=",".join(map(size_text, SIZES)),
              help="only these, such as 64,4K,1M (8 to 4M, by doubling)")
@click.option("--patterns", type=Words(), default="", help=f"only these, of {', '.join(PATTERNS)}")
@click.option("--methods", type=Words(), default="", metavar="A,B",
              help="what counts instructions, the first that can: callgrind, step (callgrind,step)")
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="so many at once (the number of cores)")
@click.option("--quick", is_flag=True, help="a quarter of the pairs")
@kept()
def landscape(sizes, patterns, methods, jobs, **given):
    """Counts instructions, page faults and system calls of a pair of calls, for patterns of calls and sizes of blocks."""
    table.choose("pattern", PATTERNS, patterns)
    table.choose("method", counting.METHODS, methods)
    chosen = [pattern for pattern in PATTERNS if not patterns or pattern in patterns]
    section = session.explore(sizes=sizes, patterns=chosen, methods=methods or counting.METHODS,
                              jobs=jobs or machine.cores(), **given)
    terminal.show_landscape(section)
    if not section.is_complete:
        sys.exit(130)
    sys.exit(1 if section.failed() else 0)


@main.command()
@click.option("--program", type=click.Path(exists=True, dir_okay=False), required=True, help="the built program latency")
@allocators()
@click.option("--workloads", type=Words(), default="", help=f"only these, of {', '.join(timing.WORKLOADS)}")
@click.option("--threads", type=click.IntRange(1, 256), metavar="N", help="threads (the number of cores)")
@click.option("--rounds", type=click.IntRange(1), default=5, metavar="N", help="runs of each (5)")
@click.option("--quick", is_flag=True, help="about a tenth of the work")
@click.option("--csv", "file", type=click.Path(dir_okay=False), metavar="FILE", help="where to keep what was measured")
def latency(program, alloc, peers, allocs, workloads, threads, rounds, quick, file):
    """Measures how long single calls of malloc and free take, as a distribution. Exit code 1: something is a FAIL."""
    table.choose("workload", timing.WORKLOADS, workloads)
    found_allocators, unused = table.find_allocators(alloc, peers, allocs)
    terminal.show_unused(unused)
    chosen = [name for name in timing.WORKLOADS if not workloads or name in workloads]
    with terminal.Bar(1) as bar:
        found, failed = timing.measure(program, found_allocators, chosen, threads or min(machine.cores(), MAX_THREADS), rounds,
                                       quick, lambda text, share: bar.tell("latency", text, share))
    if file:
        timing.write_csv(file, found)
    terminal.show_latency(found, failed)
    sys.exit(1 if failed else 0)


def finish(section):
    if not section.is_complete:
        terminal.console.print("interrupted")
        sys.exit(130)
    sys.exit(1 if section.failures() else 0)


# ---- commands that read files

FILE = click.Path(dir_okay=False)
FIELDS = {"cpu": "cpu_s", "wall": "wall_s", "peak": "peak_kib", "faults": "faults"}


def read_section(file, name="run"):
    sections = results.read(file)
    if name not in sections:
        raise results.FormatError(f"{file}: holds nothing of the command '{name}'")
    return sections[name]


@main.command()
@click.argument("first", type=FILE)
@click.argument("second", type=FILE)
@click.option("--fields", type=Words(), default="cpu,peak", help="of cpu, wall, peak, faults (cpu,peak)")
@click.option("--tests", type=Words(), default="", help="only these")
@click.option("--allocs", type=Words(), default="", help="only these")
@click.option("--changed", is_flag=True, help="only where the ranges do not overlap")
def compare(first, second, fields, tests, allocs, changed):
    """What changed from the FIRST file of results to the SECOND."""
    table.choose("field", FIELDS, fields)
    before, after = read_section(first), read_section(second)
    table.choose("test", [test.name for test in after.tests], tests)
    table.choose("allocator", after.allocators, allocs)
    terminal.show_comparison(before, after, [FIELDS[field] for field in fields], changed,
                             lambda d: d.test in (tests or [d.test]) and d.allocator in (allocs or [d.allocator]))


@main.command()
@click.argument("file", type=FILE)
@click.option("--out", type=click.Path(file_okay=False), metavar="DIR", required=True)
def report(file, out):
    """A page with charts and tables, and the overall chart as SVG and PNG."""
    from . import report as page  # it takes half a second, and its libraries start threads
    sections = results.read(file)
    if not sections.keys() & {"run", "scaling", "landscape"}:
        raise results.FormatError(f"{file}: holds nothing of the commands 'run', 'scaling' and 'landscape'")
    for path in page.write(sections, out):
        terminal.console.print(str(path), soft_wrap=True)


@main.command()
@click.argument("file", type=FILE, required=False)
def publish(file):
    """Makes the pages and charts of docs/benchmarks and the block of README.md from docs/benchmarks/results.json. The
    sections of FILE, if there is one, replace those of that file first."""
    from . import charts, plot
    from .publish import Published
    published = Published()
    if file:
        published.take(file)
    for path in published.write(lambda name, section: plot.for_paper(charts.PUBLISHED[name], section)):
        terminal.console.print(str(path), soft_wrap=True)
    for text in published.warnings():
        terminal.console.print(f"warning: {text}", soft_wrap=True)


@main.command()
@click.argument("file", type=FILE)
def goals(file):
    """Whether FILE shows that the goals of the project are reached (goals.py). Exit code 1: not all."""
    sys.exit(0 if terminal.show_goals(read_section(file)) else 1)


def entry():
    try:
        main(prog_name="bench.py")
    except (table.UsageError, results.FormatError) as error:
        print(f"bench.py: {error}", file=sys.stderr)
        sys.exit(2)  # 1 is a FAIL


if __name__ == "__main__":
    entry()
