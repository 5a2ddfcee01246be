"""Ratios of medians, geometric means and scores; builds of one library; the difference of two files; curves over
threads.

A ratio with zero in it is undefined, None, and takes no part. A mean is over the tests that both passed."""

import math
import statistics
from dataclasses import dataclass


def ratio(value, to):
    return value / to if value > 0 and to > 0 else None


def geometric_mean(values):
    logs = [math.log(value) for value in values if value is not None]
    return math.exp(statistics.fmean(logs)) if logs else None


def test_ratio(test, name, to, field):
    """The median of `name` over that of `to`, in one test."""
    passed = test.passed()
    if name not in passed or to not in passed:
        return None
    return ratio(passed[name].median(field), passed[to].median(field))


def mean_ratio(section, name, to, field):
    return geometric_mean(test_ratio(test, name, to, field) for test in section.tests)


def best(test, field, among=None):
    """The name of the smallest median, None if none passed."""
    passed = test.passed(among)
    return min(passed, key=lambda name: passed[name].median(field), default=None)


def score(section, name, field, among=None):
    """100 for the one that is best in every test it passed; 50 for one that takes twice of the best, on the average."""
    mean = geometric_mean(test_ratio(test, best(test, field, among), name, field) for test in section.tests
                          if name in test.passed(among))
    return None if mean is None else 100 * mean


# ---- where another one is better

@dataclass(frozen=True)
class Loss:
    """A test in which another allocator has a smaller median than ours, or passes where ours fails."""
    test: str
    rival: str  # the best of the others
    ratio: float  # ours / rival; None: ours fails
    is_doubtful: bool  # the ranges of the two overlap
    n_better: int  # how many of the others are better
    n_others: int  # ... of those that passed


def loss(test, ours, field):
    """None if no other allocator is better."""
    others = {name: result for name, result in test.passed().items() if name != ours}
    own = test.results.get(ours)
    if own is None or not others:
        return None
    rival = min(others, key=lambda name: others[name].median(field))
    if own.failure:
        return Loss(test.name, rival, None, False, len(others), len(others))
    n_better = sum(result.median(field) < own.median(field) for result in others.values())
    if not n_better:
        return None
    is_doubtful = ranges_overlap(own, others[rival], field)
    return Loss(test.name, rival, ratio(own.median(field), others[rival].median(field)), is_doubtful, n_better, len(others))


# ---- builds of one library

def round_ratios(test, name, to, field):
    """The ratio in each round, in which the two ran one after the other; None unless both passed."""
    passed = test.passed()
    if name not in passed or to not in passed:
        return None
    pairs = zip(passed[name].runs, passed[to].runs)  # interrupted, one may have a run more
    return [ratio(getattr(a, field), getattr(b, field)) for a, b in pairs]


def round_means(tests, name, to, field):
    """The geometric mean over the tests, in each round."""
    found = [ratios for ratios in (round_ratios(test, name, to, field) for test in tests) if ratios]
    return [geometric_mean(values) for values in zip(*found)]


# ---- two files

@dataclass(frozen=True)
class Difference:
    test: str
    allocator: str
    before: float
    after: float
    ratio: float  # after / before
    is_clear: bool  # the ranges do not overlap


def ranges_overlap(a, b, field):
    (a_low, a_high), (b_low, b_high) = a.spread(field), b.spread(field)
    return a_low <= b_high and b_low <= a_high


def differences(before, after, field):
    """For each test and allocator that both sections have, with the same arguments, and passed."""
    old = {(test.name, test.command): test.passed() for test in before.tests}
    for test in after.tests:
        for name, b in test.passed().items():
            a = old.get((test.name, test.command), {}).get(name)
            if a:
                yield Difference(test.name, name, a.median(field), b.median(field),
                                 ratio(b.median(field), a.median(field)), not ranges_overlap(a, b, field))


def not_compared(before, after):
    """What, and why."""
    for a in before.allocators.keys() ^ after.allocators.keys():
        yield a, f"only in the {'first' if a in before.allocators else 'second'} file"
    old, new = ({test.name: test for test in section.tests} for section in (before, after))
    for name in [*old, *(name for name in new if name not in old)]:
        if name not in old or name not in new:
            yield name, f"only in the {'first' if name in old else 'second'} file"
        elif old[name].command != new[name].command:
            yield name, f"other arguments: {old[name].command} | {new[name].command}"
        else:
            for a in old[name].results.keys() & new[name].results.keys():
                failures = old[name].results[a].failure, new[name].results[a].failure
                if any(failures):
                    yield f"{name}, {a}", " | ".join(failure or "passed" for failure in failures)


# ---- threads

def growth(section, test_name, allocator):
    """Threads to CPU time per thread, relative to one thread: 1 is perfect."""
    measured = {test.threads: test.passed()[allocator].median("cpu_s") for test in section.tests
                if test.name == test_name and allocator in test.passed()}
    if 1 not in measured:
        return {}
    curve = {threads: ratio(cpu_s / threads, measured[1]) for threads, cpu_s in sorted(measured.items())}
    return {threads: value for threads, value in curve.items() if value is not None}


def scaling_tests(section):
    """Test name to what it does."""
    return {test.name: test.what for test in section.tests}
