#!/usr/bin/env python3
"""What run.py makes of the end of a program: which answers are right, and which rate they give."""

import re
import sys

from run import Outcome, Rates, Row, Table, why_not


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
    rates = Rates()
    rates.add("a", ["abort", "none", "hang", "crash"])
    rates.add("b", ["prevented"])
    is_rated = rates.text() == "1.5 of 2, 75 %" and rates.text("a") == "0.5 of 1, 50 %"
    print(f"{len(cases)} answers, {len(wrong)} judged wrong; sizes {'ok' if is_expanded else 'WRONG'}, "
          f"rates {'ok' if is_rated else 'WRONG'}")
    return 1 if wrong or not is_expanded or not is_rated else 0


if __name__ == "__main__":
    sys.exit(main())
