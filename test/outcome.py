"""How the test programs written in Python end: it holds, it failed, or something that it needs is not here."""

import xml.etree.ElementTree as etree

SKIPPED = 77  # the exit status that ctest takes for "not run"


class Failed(Exception):
    pass


class Skipped(Exception):
    pass


def expect(condition, text):
    if not condition:
        raise Failed(text)


def exit_status(test):
    """Runs it, and says why it did not hold."""
    try:
        test()
    except Failed as error:
        print(f"FAILED: {error}")
        return 1
    except Skipped as reason:
        print(f"SKIP: {reason}")
        return SKIPPED
    return 0


# ---- results for scripts/run-tests.py, as ctest writes them -------------------------------------------------------------------

RAN, FAILED, NOT_RUN = "run", "fail", "notrun"


def outcome_of(test, *args):
    """(RAN, FAILED or NOT_RUN, what is to be said of it)"""
    try:
        return RAN, test(*args) or ""
    except Failed as why:
        return FAILED, str(why)
    except Skipped as why:
        return NOT_RUN, str(why)


def write_results(path, suite, outcomes):
    """`outcomes`: (the name of a test, what became of it, what was said, how many seconds it took or None)."""
    root = etree.Element("testsuite", name=suite, tests=str(len(outcomes)))
    for name, status, said, seconds in outcomes:
        one = etree.SubElement(root, "testcase", name=name, classname=suite, status=status)
        if seconds is not None:
            one.set("time", f"{seconds:.1f}")
        if status == FAILED:
            etree.SubElement(one, "failure", message=said[:400])
        elif status == NOT_RUN:
            etree.SubElement(one, "skipped", message=f"SKIP_RETURN_CODE={SKIPPED}")
            etree.SubElement(one, "system-out").text = f"skipped: {said}\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    etree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)
