#!/usr/bin/env python3
"""What run.py makes of the end of a program: which answers are right, and what counts as a crash."""

import re
import sys

from run import Outcome, Row, Table, why_not


def main():
    table = Table([], {"small": [24, 50]}, {"overflow": re.compile("overflow"), "foreign": re.compile("foreign")}, {"foreign"})
    named_block = "block 0x7f00 24\n"
    good = "mimalloc: error: overflow of block 0x7f00: 24 bytes\n"

    def outcome(out=named_block, err="", number=0, status=0, **more):
        return Outcome(number, status, out, err, **more)

    cases = [  # what happened, what is expected, is it right
        (outcome(err=good, number=6), "overflow", True),
        (outcome(err=good.replace("error: ", "error: thread 0x7e: "), number=6), "overflow", True),
        (outcome(err="other\n" + good, number=6), "overflow", True),
        (outcome(err=good, number=11), "overflow", False),
        (outcome(out=named_block + "undetected\n", err=good), "overflow", False),
        (outcome(err=good.replace("7f00", "7f01"), number=6), "overflow", False),
        (outcome(err=good.replace("24 bytes", "it"), number=6), "overflow", False),
        (outcome(err=good.replace("24 bytes", "32 bytes"), number=6), "overflow", True),
        (outcome(err=good.replace("24 bytes", "8 bytes"), number=6), "overflow", False),
        (outcome(err=good.replace("overflow", "damage"), number=6), "overflow", False),
        (outcome(err=good.replace("error", "warning"), number=6), "overflow", False),
        (outcome(err="mimalloc: error: foreign 0x7f00\n", number=6), "foreign", True),
        (outcome(err="mimalloc: error: foreign 0x7f08\n", number=6), "foreign", False),
        (outcome(number=11), "signal", True),
        (outcome(number=7), "overflow or signal", True),
        (outcome(number=6), "signal", False),
        (outcome(number=11, err=good), "signal", True),  # a guarded block's report does not replace the fault
        (outcome(number=6, err=good), "signal", False),
        (outcome(out=named_block + "undetected\n"), "none", True),
        (outcome(out=named_block + "undetected\n"), "overflow or signal", False),
        (outcome(out=named_block + "undetected\n"), "prevented", False),
        (outcome(number=11), "none", False),
        (outcome(out=named_block + "prevented\n"), "prevented", True),
        (outcome(out=named_block + "prevented\n"), "none", False),
        (outcome(out="prevented without errno\n"), "prevented", False),
        (outcome(out=named_block + "undetected\n", err=good), "none", False),
        (outcome(is_hung=True), "none", False),
        (outcome(is_hung=True), "chance", False),
        (outcome(number=11), "chance", True),
        (outcome(number=6, err=good), "chance", False),
    ]
    wrong = [(seen, text) for seen, text, is_right in cases if (why_not(seen, text.split(" or "), table) is None) != is_right]
    for seen, text in wrong:
        print(f"FAIL {text}: {seen}")
    row = Row("some", "group", "overflow {small} 1", {})
    is_expanded = row.commands(table.sizes) == [["overflow", "24", "1"], ["overflow", "50", "1"]]
    kinds = [  # how a run ended, in one word, and the signal of a crash
        (outcome(err=good, number=6), "abort", ""),
        (outcome(err=good, number=11), "abort", ""),
        (outcome(number=11), "crash", "SIGSEGV"),
        (outcome(number=7), "crash", "SIGBUS"),
        (outcome(number=6), "crash", "SIGABRT"),
        (outcome(out="undetected\n", err=good), "report", ""),
        (outcome(out="undetected\n"), "none", ""),
        (outcome(out="prevented\n"), "prevented", ""),
        (outcome(is_hung=True), "hang", ""),
    ]
    n_misnamed = sum((seen.kind, seen.crash) != (kind, crash) for seen, kind, crash in kinds)
    print(f"{len(cases)} answers, {len(wrong)} judged wrong; sizes {'ok' if is_expanded else 'WRONG'}, "
          f"{len(kinds)} ends, {n_misnamed} named wrong")
    return 1 if wrong or not is_expanded or n_misnamed else 0


if __name__ == "__main__":
    sys.exit(main())
