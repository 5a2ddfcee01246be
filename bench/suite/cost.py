"""The cost of a run, and the reason that it has none."""

from dataclasses import dataclass


class Failure(Exception):
    """Why a run does not count."""


@dataclass(frozen=True)
class Cost:
    cpu_s: float  # user and system, of all threads
    wall_s: float
    peak_kib: float  # of resident memory
    faults: float  # minor page faults
    major_faults: float = 0


def reported_cost(text):
    """What a script measured itself: lines `cost cpu_s=1.5 wall_s=2 peak_kib=9000 faults=800 [major_faults=0]`, which
    add up; of the peaks the largest counts."""
    costs = []
    for line in text.splitlines():
        word, *fields = line.split()
        try:
            if word != "cost":
                raise ValueError
            costs.append(Cost(**{name: float(value) for name, _, value in (field.partition("=") for field in fields)}))
        except (TypeError, ValueError):
            raise Failure(f"not a line of cost: '{line[:100]}'") from None
    if not costs:
        raise Failure("the script reports no cost")
    return Cost(sum(c.cpu_s for c in costs), sum(c.wall_s for c in costs), max(c.peak_kib for c in costs),
                sum(c.faults for c in costs), sum(c.major_faults for c in costs))
