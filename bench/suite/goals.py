"""What this project wants to reach, and whether a file of results shows it."""

from dataclasses import dataclass

from .scores import best, mean_ratio, ranges_overlap, ratio, score

PEERS = ("mimalloc2", "mimalloc3", "snmalloc", "rpmalloc", "jemalloc", "tcmalloc", "glibc")


@dataclass(frozen=True)
class EachTest:
    """At most so many times the best peer, in every test; among all peers, or those that are not much slower than the
    fastest one."""
    title: str
    field: str
    at_most: float
    slower_at_most: float = None


@dataclass(frozen=True)
class Overall:
    """The geometric mean of the ratios to each single peer."""
    title: str
    field: str
    at_most: float


@dataclass(frozen=True)
class Score:
    """Above a bound, and so many points ahead of every peer. The best of a test is taken among the peers and ours."""
    title: str
    field: str
    above: float
    ahead: float


GOALS = (
    EachTest("CPU time of each test at most 1.03 x the fastest peer", "cpu_s", 1.03),
    EachTest("peak memory of each test at most 1.10 x the smallest peer that is at most 25 % slower than the fastest",
             "peak_kib", 1.10, 1.25),
    Overall("CPU time over all tests at most 0.90 x every peer", "cpu_s", 0.90),
    Overall("peak memory over all tests the smallest", "peak_kib", 1.00),
    Overall("page faults over all tests the fewest", "faults", 1.00),
    Score("time score above 97, and 5 points ahead of every peer", "cpu_s", 97, 5),
)


@dataclass(frozen=True)
class Verdict:
    title: str
    misses: list  # texts, the worst first; empty: the goal is reached
    n_checked: int  # of how many


def verdicts(section, goals=GOALS, peers=PEERS):
    measured = [name for name in section.allocators if name in peers and name != section.ours]
    check = {EachTest: check_each_test, Overall: check_overall, Score: check_score}
    return [check[type(goal)](goal, section, measured) for goal in goals]


def are_reached(section):
    """Whether the file shows that all goals are reached: a quick or incomplete run, or one without a peer, shows nothing."""
    return (section.is_complete and not section.is_quick and not missing_peers(section) and
            all(verdict.n_checked and not verdict.misses for verdict in verdicts(section)))


def missing_peers(section, peers=PEERS):
    return [name for name in peers if name not in section.allocators]


def check_each_test(goal, section, peers):
    misses, n_checked = [], 0
    for test in section.tests:
        if section.ours not in test.results:
            continue
        own = test.results[section.ours]
        rivals = set(test.passed(peers))
        if goal.slower_at_most and rivals:
            fastest = test.results[best(test, "cpu_s", rivals)].median("cpu_s")
            rivals = {name for name in rivals
                      if test.results[name].median("cpu_s") <= goal.slower_at_most * fastest}
        rival = best(test, goal.field, rivals)
        n_checked += bool(own.failure or rival)
        if own.failure:
            misses.append((float("inf"), f"{test.name}: FAIL: {own.failure}"))
        elif rival:
            value = ratio(own.median(goal.field), test.results[rival].median(goal.field))
            if value is not None and value > goal.at_most:
                doubt = ", the ranges overlap" if ranges_overlap(own, test.results[rival], goal.field) else ""
                misses.append((value, f"{test.name}: {value:.3f} x {rival}{doubt}"))
    return Verdict(goal.title, in_order(misses), n_checked)


def check_overall(goal, section, peers):
    values = {peer: mean_ratio(section, section.ours, peer, goal.field) for peer in peers}
    values = {peer: value for peer, value in values.items() if value is not None}
    misses = [(value, f"{value:.3f} x {peer}") for peer, value in values.items() if value > goal.at_most]
    return Verdict(goal.title, in_order(misses), len(values))


def check_score(goal, section, peers):
    among = {section.ours, *peers}
    own = score(section, section.ours, goal.field, among)
    if own is None:
        return Verdict(goal.title, ["no test passed"], 1)
    if not peers:
        return Verdict(goal.title, [], 0)
    misses = [] if own > goal.above else [(float("inf"), f"the score is {own:.1f}")]
    for peer in peers:
        value = score(section, peer, goal.field, among)
        if value is not None and own - value < goal.ahead:
            misses.append((value - own, f"{own - value:+.1f} points to {peer} ({own:.1f} to {value:.1f})"))
    return Verdict(goal.title, in_order(misses), 1 + len(peers))


def in_order(misses):
    return [text for _, text in sorted(misses, key=lambda miss: -miss[0])]
