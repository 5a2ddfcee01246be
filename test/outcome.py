"""How the test programs written in Python end: it holds, it failed, or something that it needs is not here."""

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
