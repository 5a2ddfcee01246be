"""The page: charts and tables of a file of results, in one file without scripts."""

import math
import pathlib

import jinja2
from markupsafe import Markup

from . import charts, goals, landscape, overview, plot, scores
from .heat import landscape as heat_map

HERE = pathlib.Path(__file__).resolve().parent
FIELDS = (("cpu_s", "CPU time"), ("peak_kib", "Peak memory"), ("faults", "Page faults"))


def write(sections, directory):
    """Makes index.html, overall.svg and overall.png; gives their paths."""
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    page = directory / "index.html"
    page.write_text(render(sections), encoding="utf-8")
    run = sections.get("run")
    return [page, *(plot.write_files(overview.overall, run, directory / "overall") if run else [])]


def render(sections):
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(HERE), autoescape=True, trim_blocks=True,
                                     lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    environment.filters["number"] = number
    run, scaling, cells = sections.get("run"), sections.get("scaling"), sections.get("landscape")
    return environment.get_template("report.html").render(
        css=Markup((HERE / "report.css").read_text(encoding="utf-8")), head=run or scaling or cells, run=run,
        scaling=scaling, landscape=cells, limit=landscape.LIMIT, cells=landscape_rows(cells) if cells else [],
        heat_map=Markup(plot.for_page(heat_map, cells)) if cells else "",
        overall=Markup(plot.for_page(overview.overall, run)) if run else "", score_rows=score_rows(run) if run else [],
        ratios=[ratios(run, field, title) for field, title in FIELDS] if run else [],
        verdicts=goals.verdicts(run) if run else [], missing_peers=goals.missing_peers(run) if run else [],
        measured=[measured(test, run.ours) for test in run.tests] if run else [],
        curves=Markup(plot.for_page(charts.scaling, scaling)) if scaling else "",
        growth=[growth(scaling, test) for test in scores.scaling_tests(scaling)] if scaling else [])


def number(value, places=2):
    if value is None:
        return "–"
    return f"{value:,.{places}f}"


# ---- what the page shows

def score_rows(section):
    rows = [{"name": name, "version": section.allocators[name], "passed": section.passes(name),
             "scores": [scores.score(section, name, field) for field, _ in FIELDS],
             "means": [scores.mean_ratio(section, name, section.ours, field) for field, _ in FIELDS]}
            for name in section.allocators]
    return sorted(rows, key=lambda row: -(row["scores"][0] or 0))


def ratios(section, field, title):
    """A chart and a table of the medians relative to ours. Of the page faults only the table: they say why."""
    rows = [(test.name, [cell(test, name, section.ours, field) for name in section.allocators]) for test in section.tests]
    means = [heat(scores.mean_ratio(section, name, section.ours, field)) for name in section.allocators]
    chart = "" if field == "faults" else Markup(plot.for_page(
        charts.each_test, section, field, f"{title[0].lower() if title[1].islower() else title[0]}{title[1:]} relative to {section.ours}: left is better"))
    return {"title": title, "chart": chart, "rows": rows, "means": means}


def cell(test, name, ours, field):
    if name in test.results and test.results[name].failure:
        return {"value": None, "kind": "fail", "strength": 0}
    return heat(scores.test_ratio(test, name, ours, field))


def heat(value):
    """A ratio with a colour that is strongest from four times (or a quarter) on."""
    if value is None:
        return {"value": None, "kind": "", "strength": 0}
    strength = min(abs(math.log2(value)) / 2, 1)
    return {"value": value, "kind": "more" if value > 1 else "less", "strength": round(strength * 0.6, 2)}


def measured(test, ours):
    best = scores.best(test, "cpu_s")
    rows = []
    for name, result in test.results.items():
        if result.failure:
            rows.append({"name": name, "failure": result.failure})
            continue
        cells = [with_range(result, "cpu_s", 1, 3), with_range(result, "wall_s", 1, 3),
                 with_range(result, "peak_kib", 1024, 1), with_range(result, "faults", 1, 0),
                 with_range(result, "major_faults", 1, 0)]
        rows.append({"name": name, "failure": "", "cells": cells, "is_best": name == best,
                     "ratio": scores.test_ratio(test, name, ours, "cpu_s")})
    return {"test": test, "rows": rows}


def with_range(result, field, unit, places):
    low, high = result.spread(field)
    return {"median": number(result.median(field) / unit, places),
            "range": "" if low == high else f"{number(low / unit, places)}–{number(high / unit, places)}"}


def landscape_rows(section):
    """The cells in which ours takes clearly more instructions than the best of the others."""
    rows = []
    for loss in landscape.losses(section):
        cell = loss.pattern, loss.size
        names = section.ours, loss.rival
        rows.append({"cell": landscape.cell_text(*cell), "ratio": loss.ratio, "rival": loss.rival,
                     "instructions": [section.value("instructions", name, *cell) for name in names],
                     "kernel": [section.kernel(name, *cell) for name in names],
                     "fair_ratio": loss.fair_ratio, "fair_rival": loss.fair_rival})
    return rows


def growth(section, name):
    tests = [test for test in section.tests if test.name == name]
    rows = []
    for allocator in section.allocators:
        curve = scores.growth(section, name, allocator)
        alone = next((t.results[allocator].median("cpu_s") for t in tests if t.threads == 1 and curve), None)
        rows.append((allocator, alone, [curve.get(test.threads) for test in tests]))
    return {"name": name, "what": tests[0].what, "counts": [test.threads for test in tests], "rows": rows}
