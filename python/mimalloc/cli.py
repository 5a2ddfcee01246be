"""The command line.  Each command's work is in a module of its own, which is imported when the command runs."""

import contextlib
import importlib.metadata
import os
import signal
import sys

import click

from .errors import ToolError

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def _drop_output():
    """What is left in the buffer has nowhere to go: at exit it would fail once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


@contextlib.contextmanager
def _in_sentences():
    """What goes wrong is said in a sentence, and ends the command; it ends quietly when a pipe is closed."""
    try:
        if sys.stdout is None:
            raise ToolError("There is no standard output.")
        yield
        sys.stdout.flush()
    except ToolError as error:
        click.echo(f"mimalloc: {error}", err=True)
        sys.exit(error.status)
    except BrokenPipeError:
        _drop_output()
        sys.exit(128 + signal.SIGPIPE)
    except OSError as error:    # with a name: a file that went away meanwhile
        _drop_output()
        what = f"{error.filename} cannot be used" if error.filename else "The output cannot be written"
        click.echo(f"mimalloc: {what}: {error.strerror}.", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)


class Group(click.Group):
    def list_commands(self, ctx):
        return list(self.commands)

    def main(self, *args, **more):
        with _in_sentences():   # --help and --version, too, which print before a command is invoked
            return super().main(*args, **more)

    def invoke(self, ctx):
        with _in_sentences():   # before click makes another status of a closed pipe
            return super().invoke(ctx)


def with_json(command):
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


class LimitType(click.ParamType):
    """A size in bytes, or a share as the library takes it."""
    name = "limit"

    def convert(self, value, param, ctx):
        if str(value).strip().endswith("%"):
            share = str(value).strip().removesuffix("%")
            if not share.isdecimal() or not 1 <= int(share) <= 100:
                self.fail(f"{value!r} is no limit: a share is between 1% and 100%.", param, ctx)
            return f"{int(share)}%"
        units = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
        text = str(value).strip().upper().removesuffix("IB").removesuffix("B")
        number, unit = (text[:-1], text[-1]) if text[-1:] in units and text[-1:] else (text, "")
        try:
            n = int(float(number) * units[unit])
        except (ValueError, KeyError, OverflowError):     # the last one: infinity
            self.fail(f"{value!r} is no limit: write a number of bytes, one with K, M, G or T behind it, or a share such as 80%.", param, ctx)
        if n <= 0:
            self.fail(f"{value!r} is no limit: it must be more than 0.", param, ctx)
        return n


class SecondsType(click.FloatRange):
    """A time to wait: up to a day, and a number."""

    def __init__(self, least):
        super().__init__(min=least, max=86400)

    def convert(self, value, param, ctx):
        seconds = super().convert(value, param, ctx)
        if seconds != seconds:
            self.fail(f"{value!r} is no number of seconds.", param, ctx)
        return seconds


def _version():
    """Of the package; a checkout that is not installed has none."""
    try:
        return importlib.metadata.version("mimalloc-tools")
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


class SignalType(click.ParamType):
    """A signal for which a program can have a handler."""
    name = "signal"

    def convert(self, value, param, ctx):
        from .trigger import signal_number
        number = signal_number(str(value))
        if number is None:
            self.fail(f"{value!r} is no signal: write USR2, or a number.", param, ctx)
        if number in (signal.SIGKILL, signal.SIGSTOP):
            self.fail(f"No program can handle {value!r}: write USR2, or another signal.", param, ctx)
        return number


@click.group(cls=Group, context_settings=CONTEXT)
@click.version_option(version=_version(), prog_name="mimalloc", message="%(prog)s (mimalloc-tools %(version)s)")
def cli():
    """Runs programs with the mimalloc allocator, and shows what they do with memory."""


@cli.command(context_settings={**CONTEXT, "allow_interspersed_args": False})
@click.option("--secure", is_flag=True, help="Use the library that checks blocks.")
@click.option("--stats", is_flag=True, help="Print statistics when the program ends.")
@click.option("--guard", type=click.IntRange(min=1), metavar="N", help="Guard one block in N: report overflows and uses after free.")
@click.option("--profile", metavar="PREFIX", help="Write a heap profile at the end, to PREFIX.PID.NUMBER.pb.")
@click.option("--profile-signal", type=SignalType(), metavar="SIGNAL", help="Start and write the profile on this signal (`mimalloc profile`).")
@click.option("--limit", type=LimitType(), metavar="SIZE", help="Let the program have so much memory: 512M, 2G, or 80% of what there is.")
@click.option("--publish", type=click.Choice(["process", "forks", "off"]), default="off", show_default=True,
              help="Publish statistics for `top` and `export`.")
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
def run(program, **options):
    """Runs PROGRAM with the allocator preloaded.  Its exit status is that of the program.

    A program whose name ends in .py is run by this Python, and Python's own allocator is switched off in favour of ours."""
    from .run import run as run_program
    run_program(list(program), **options)


@cli.command()
@click.argument("pids", nargs=-1, type=int)
@click.option("--interval", type=SecondsType(0.1), default=1.0, show_default=True, help="Seconds between two rows.")
@click.option("--count", type=click.IntRange(min=1), help="Stop after so many.  In a pipe: 1.")
@with_json
def top(pids, interval, count, as_json):
    """Shows the processes that publish their statistics, all or those with PIDS."""
    from .top import top as show
    show(pids, interval, count, as_json)


@cli.command()
@click.argument("source", type=str)
@click.option("--bins", is_flag=True, help="Also show blocks by size.")
@with_json
def stats(source, bins, as_json):
    """Shows the statistics in SOURCE: a published page, JSON of mi_stats_get_json, the pid of a publishing process, or - for
    standard input."""
    from .statistics import show
    show(source, bins, as_json)


@cli.command()
@click.option("--once", is_flag=True, help="Print to standard output and end.")
@click.option("--address", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", type=click.IntRange(0, 65535), default=9816, show_default=True, help="0: any that is free.")
@click.option("--dashboard", is_flag=True, help="Print the dashboard for Grafana.")
@click.option("--json", "as_json", is_flag=True, help="With --once: print JSON.")
def export(once, address, port, dashboard, as_json):
    """Serves the statistics of all publishing processes to Prometheus, at /metrics."""
    from .export import export as serve
    serve(once, address, port, dashboard, as_json)


@cli.command()
@click.argument("pid", type=int)
@click.option("--start", is_flag=True, help="Start the profile.")
@click.option("--stop", is_flag=True, help="Take no samples any more.")
@click.option("--write", is_flag=True, help="Write the profile (the default).")
@click.option("--wait", type=SecondsType(0), default=10.0, show_default=True, help="Seconds to wait for the file.")
@with_json
def profile(pid, wait, as_json, **actions):
    """Makes a running process write its heap profile.  It was started by `run --profile-signal`."""
    from .trigger import trigger
    asked = [name for name, is_set in actions.items() if is_set]
    if len(asked) > 1:
        raise ToolError("Ask for only one of --start, --stop and --write.")
    trigger(pid, *(asked or ["write"]), wait, as_json)


def _with_profile(command):
    command = click.option("--no-symbols", is_flag=True, help="Do not look up names of functions.")(command)
    return click.option("--type", "sample_type", default=None, metavar="TYPE",
                        help="inuse_space (default), inuse_objects, alloc_space or alloc_objects.")(command)


@cli.command()
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="By default FILE with .html at the end.")
@_with_profile
def flame(file, output, sample_type, no_symbols):
    """Makes a flame graph of a heap profile, as one HTML file."""
    from .reports import flame as make
    make(file, output, sample_type, not no_symbols)


@cli.command()
@click.argument("file", type=click.Path(dir_okay=False))
@_with_profile
@with_json
def folded(file, sample_type, no_symbols, as_json):
    """Prints the stacks of a heap profile, one on a line with its amount, as flame graph programs read them."""
    from .reports import folded as make
    make(file, sample_type, not no_symbols, as_json)


@cli.command()
@click.argument("before", type=click.Path(dir_okay=False))
@click.argument("after", type=click.Path(dir_okay=False))
@click.option("--rows", type=click.IntRange(min=1), default=20, show_default=True, help="Functions to show.")
@_with_profile
@with_json
def diff(before, after, rows, sample_type, no_symbols, as_json):
    """Shows which functions have more or less in the second profile than in the first."""
    from .reports import diff as make
    make(before, after, rows, sample_type, not no_symbols, as_json)


@cli.command()
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--rows", type=click.IntRange(min=1), default=20, show_default=True, help="Stacks to show.")
@click.option("--no-symbols", is_flag=True, help="Do not look up names of functions.")
@with_json
def leaks(file, rows, no_symbols, as_json):
    """Shows the stacks that have memory in use in a profile: at the end of a program, what it has not freed."""
    from .reports import leaks as make
    make(file, rows, not no_symbols, as_json)


@cli.command(context_settings={**CONTEXT, "allow_interspersed_args": False})
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True, help="Runs with each allocator.")
@click.option("--secure", is_flag=True, help="Also the library that checks blocks.")
@click.option("--suite", is_flag=True, help="Run the benchmark suite of the source tree, with PROGRAM as its arguments.")
@with_json
@click.argument("program", nargs=-1, type=click.UNPROCESSED)
def bench(program, rounds, secure, suite, as_json):
    """Compares PROGRAM with the malloc of the system and with this allocator: CPU time, memory and page faults."""
    from .bench import bench as compare
    compare(list(program), rounds, secure, suite, as_json)


@cli.command()
@click.option("--pid", type=int, help="Look at this process too: is it served by the allocator?")
@with_json
def doctor(pid, as_json):
    """Checks the library, the variables MIMALLOC_..., and the settings of the system that matter."""
    from .doctor import doctor as check
    sys.exit(check(pid, as_json))


def main():
    if sys.stdout is not None:
        sys.stdout.reconfigure(errors="backslashreplace")   # names of functions may have letters that its encoding lacks
    cli(prog_name="mimalloc")
