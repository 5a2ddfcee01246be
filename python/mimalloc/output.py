"""How results are shown: tables and colours in a terminal, plain text in a pipe, JSON on request."""

import json
import os
import sys

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

PLAIN_WIDTH = 200
UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def size(n):
    """Bytes for people."""
    if n is None:
        return "-"
    sign, n = ("-" if n < 0 else ""), abs(n)
    for unit in UNITS[:-1]:
        if n < 1024:
            break
        n /= 1024
    else:
        unit = UNITS[-1]
    return f"{sign}{n:.0f} {unit}" if unit == "B" else f"{sign}{n:.1f} {unit}"


def count(n):
    return "-" if n is None else f"{n:,}".replace(",", " ")


def seconds(n):
    if n is None:
        return "-"
    return f"{n:.1f} s" if n < 100 else f"{n / 60:.0f} min" if n < 6000 else f"{n / 3600:.0f} h"


def printable(text):
    """What others have written, as it can be printed: a terminal may obey a name, and a line of its own begins with one."""
    return "".join(c if c.isprintable() else "?" for c in text)


def console(stderr=False):
    stream = sys.stderr if stderr else sys.stdout
    is_terminal = stream.isatty()
    return Console(file=stream, highlight=False, soft_wrap=not is_terminal, emoji=False, markup=True,
                   width=None if is_terminal else PLAIN_WIDTH)


def is_terminal():
    return sys.stdout.isatty()


def table(columns, rows, title=None):
    """`columns`: (heading, is it a number?).  For a terminal; print_table also knows pipes."""
    result = Table(title=Text(title) if title else None, title_justify="left", header_style="bold", box=None, pad_edge=False,
                   collapse_padding=True, padding=(0, 2, 0, 0))
    for heading, is_number in columns:
        result.add_column(heading, justify="right" if is_number else "left", no_wrap=is_number)
    for row in rows:
        result.add_row(*row)
    return result


def plain_table(columns, rows):
    """Aligned columns without colours."""
    rows = [[Text.from_markup(cell).plain for cell in row] for row in rows]
    widths = [max([len(heading), *(len(row[i]) for row in rows)]) for i, (heading, _) in enumerate(columns)]
    lines = [[heading for heading, _ in columns], *rows]
    return "\n".join("  ".join(cell.rjust(width) if columns[i][1] else cell.ljust(width)
                               for i, (cell, width) in enumerate(zip(line, widths))).rstrip() for line in lines)


def print_table(columns, rows, title=None):
    rows = list(rows)
    if is_terminal():
        console().print(table(columns, rows, title))
        return
    if title:
        print(title)
    print(plain_table(columns, rows))


def print_path(path):
    """Its bytes, whatever they are: other commands take it from there."""
    click.echo(os.fsencode(path))


def print_json(value):
    print(json.dumps(value, indent=2))
