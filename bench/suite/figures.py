"""Tables in Markdown of what was measured: means, losses, every test. Needs no packages."""

import dataclasses

from . import bugs, scores
from .bugs import table

FIELDS = (("cpu_s", "CPU time"), ("peak_kib", "peak memory"), ("faults", "page faults"))
FAIR = 1.25  # of the memory of others: those that take at most so many times the CPU time of the fastest
GROUPS = (("Programs", lambda test: not test.is_real), ("Real programs", lambda test: test.is_real), ("All", lambda test: True))


def part(section, is_in):
    return dataclasses.replace(section, tests=[test for test in section.tests if is_in(test)])


# ---- numbers

def number(value, places=2):
    return "–" if value is None else f"{value:.{places}f}"


def better(value, places=2):
    """A ratio to ours; bold where the other one is better."""
    text = number(value, places)
    return f"**{text}**" if value is not None and value < 1 else text


def more(value):
    """How much more than the other one, in per cent."""
    per_cent = 100 * (value - 1)
    return f"+{per_cent:.0f} %" if per_cent >= 9.95 else f"+{per_cent:.1f} %" if per_cent >= 0.05 else "+<0.1 %"


def loss_text(loss):
    if loss is None:
        return "–"
    how_much = "FAIL" if loss.ratio is None else more(loss.ratio)
    return f"{how_much}{' ~' if loss.is_doubtful else ''}, {loss.rival}; {loss.n_better} of {loss.n_others}"


# ---- tables of a run

def means(section):
    """Each allocator's geometric mean over ours, and the scores."""
    names = sorted(section.allocators, key=lambda name: -(scores.score(section, name, "cpu_s") or 0))
    parts = [part(section, is_in) for title, is_in in reversed(GROUPS) if title != "Programs"]
    heads = ["", *(f"{word}, {title}" for _, word in FIELDS for title in ("all", "real")), "time score", "memory score"]
    rows = [[name, *(better(scores.mean_ratio(p, name, section.ours, field)) for field, _ in FIELDS for p in parts),
             *(number(scores.score(section, name, field), 1) for field in ("cpu_s", "peak_kib"))] for name in names]
    return table(heads, rows)


def losses(section):
    """Every test in which another allocator is faster or smaller; and how many those are."""
    rows, counts = [], [0, 0]
    for test in section.tests:
        found = [scores.loss(test, section.ours, field) for field in ("cpu_s", "peak_kib")]
        counts = [count + (loss is not None) for count, loss in zip(counts, found)]
        if any(found):
            rows.append([test.name, *map(loss_text, found)])
    return table(["test", "CPU time", "peak memory"], rows), counts


LOSSES = """In {slower} of {n} tests another allocator takes less CPU time than this library, and in {larger} its peak memory
is smaller. The table lists all of them: how much more this library takes than the best of the others, which one that is, and how many
of the others are better. `~`: the ranges over the rounds overlap, so the difference may be chance.

"""


def losses_text(section):
    rows, (slower, larger) = losses(section)
    return LOSSES.format(n=len(section.tests), slower=slower, larger=larger) + rows


def group_means(section):
    names = list(section.allocators)
    rows = [[word, *(better(scores.mean_ratio(section, name, section.ours, field), 3) for name in names)]
            for field, word in FIELDS]
    rows += [[f"{title} score", *(number(scores.score(section, name, field), 1) for name in names)]
             for field, title in (("cpu_s", "time"), ("peak_kib", "memory"))]
    return table(["", *names], rows)


def measured(section):
    heads = ["test", "CPU s [min-max]", "x fastest other", "peak MiB", "x smallest other", "x smallest fair", "x glibc",
             "faults", "fewest"]
    return table(heads, [[test.name, *measured_row(test, section.ours)] for test in section.tests])


def measured_row(test, ours):
    own = test.results.get(ours)
    if own is None or own.failure:
        return [f"FAIL: {own.failure}" if own else "–", *["–"] * 7]
    others = {name for name in test.passed() if name != ours}
    fewest = scores.best(test, "faults", others)
    low, high = own.spread("cpu_s")
    return [f"{own.median('cpu_s'):.3f} [{low:.3f}-{high:.3f}]", against(test, ours, others, "cpu_s"),
            f"{own.median('peak_kib') / 1024:.1f}", against(test, ours, others, "peak_kib"),
            against(test, ours, fair(test, others), "peak_kib"), number(scores.test_ratio(test, ours, "glibc", "peak_kib")),
            f"{own.median('faults'):.0f}", f"{fewest} {test.results[fewest].median('faults'):.0f}" if fewest else "–"]


def fair(test, others):
    if not others:
        return set()
    fastest = test.results[scores.best(test, "cpu_s", others)].median("cpu_s")
    return {name for name in others if test.results[name].median("cpu_s") <= FAIR * fastest}


def against(test, ours, others, field):
    """Ours over the best of the others; bold where that is better."""
    rival = scores.best(test, field, others) if others else None
    value = rival and scores.test_ratio(test, ours, rival, field)
    if not value:
        return "–"
    return f"**{value:.2f}** {rival}" if value > 1 else f"{value:.2f} {rival}"


def matrix(section, field):
    names = [name for name in section.allocators if name != section.ours]
    rows = [[test.name, *(cell(test, name, section.ours, field) for name in names)] for test in section.tests]
    rows += [["**geometric mean**", *(better(scores.mean_ratio(section, name, section.ours, field)) for name in names)]]
    return table(["test", *names], rows)


def cell(test, name, ours, field):
    is_failure = name in test.results and test.results[name].failure
    return "FAIL" if is_failure else better(scores.test_ratio(test, name, ours, field))


# ---- tables of builds

def builds(section, field, word):
    base, *others = section.allocators
    rows = [[test.name, *(with_spread(scores.test_ratio(test, name, base, field),
                                      scores.round_ratios(test, name, base, field)) for name in others)]
            for test in section.tests]
    rows.append(["**geometric mean**", *(mean_with_spread(section, name, field) for name in others)])
    return table([word, *others], rows)


def with_spread(value, rounds):
    known = [r for r in rounds or [] if r is not None]
    return "–" if value is None or not known else f"{value:.3f} [{min(known):.3f}-{max(known):.3f}]"


def mean_with_spread(section, name, field):
    return with_spread(scores.mean_ratio(section, name, section.ours, field),
                       scores.round_means(section.tests, name, section.ours, field))


def builds_by_both(found, section):
    rows = []
    for name in found.ours:
        rates = found.rates(name)
        costs = [cost(section, name, field) for field, _ in FIELDS[:2]]
        rows.append([name, rates.text(bugs.DETECTED), bugs.plain(rates.count(["crash"])[0]), *costs])
    return table(["build", "detected", "crash", "CPU time", "peak memory"], rows)


def cost(section, name, field):
    if name == section.ours:
        return "1"
    return mean_with_spread(section, name, field) if name in section.allocators else "–"
