"""Many runs: in which order, and what a run has to agree with."""

import collections

from .cost import Failure
from .measure import run_once
from .results import Result
from .table import GLIBC


def order(names, number):
    """The order in a round: another one goes first each time, so that whatever else the machine does hits all alike."""
    first = number % len(names)
    return names[first:] + names[:first]


def run_test(jobs, rounds, timeout_s, tell=lambda text, share: None, run=run_once):
    """Runs each job, {allocator: Job}, once to warm up and then in rounds; gives {allocator: Result}.

    In the warm-up the loader says whether the library is there. tell(text, share) is called before each run with the
    share of the test that is done. Interrupted, it raises Interrupted; that has the results if each allocator has some."""
    results = {name: Result() for name in jobs}
    names = list(jobs)
    try:
        for number in range(rounds + 1):
            for place, name in enumerate(order(names, number)):
                tell(f"{'warm-up' if number == 0 else f'round {number} of {rounds}'}: {name}",
                     (number * len(names) + place) / ((rounds + 1) * len(names)))
                if not results[name].failure:
                    run_into(results[name], jobs[name], timeout_s, run, is_warm_up=number == 0)
    except KeyboardInterrupt:
        judge(results)
        raise Interrupted(results if all(r.failure or r.runs for r in results.values()) else None) from None
    judge(results)
    return results


class Interrupted(KeyboardInterrupt):
    def __init__(self, results):
        super().__init__()
        self.results = results


def run_into(result, job, timeout_s, run, is_warm_up):
    try:
        cost, output = run(job, timeout_s, is_library_checked=is_warm_up)
        if result.output not in (None, output):
            raise Failure("the output differs from run to run")
        result.output = output
        if not is_warm_up:
            result.runs.append(cost)
    except Failure as failure:
        result.failure = str(failure)


def judge(results):
    """The output that most have is right; if as many have another one, then that of the system's malloc."""
    outputs = collections.Counter(r.output for r in results.values() if not r.failure and r.output is not None)
    if GLIBC in results and not results[GLIBC].failure and results[GLIBC].output is not None:
        outputs[results[GLIBC].output] += 0.5
    for result in results.values():
        if not result.failure and result.output is not None and result.output != outputs.most_common(1)[0][0]:
            result.failure = "the output is another one than with the other allocators"


def powers_of_two(most):
    """1, 2, 4, ... and the largest number of threads itself."""
    counts = [2 ** i for i in range(most.bit_length()) if 2 ** i < most]
    return counts + [most]
