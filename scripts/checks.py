"""What the scripts that check the rules of the tree share: the command line, the report, and the self-test.

A kind of tree is a class. Its objects are made from a root directory; after check() they have `counted`, a text that says what
was checked, and the list `broken` of (rule, where, text)."""

import argparse
import pathlib
import sys
import tempfile


def checked(kind, root):
    tree = kind(root)
    tree.check()
    return tree


def self_test(kind, good, bad):
    """Makes small trees: `good`, which maps names of files to texts and keeps all rules, and changes of it that break one rule
    each, (rule, changed files)."""
    failed = 0
    for rule, change in [(None, {}), *bad]:
        with tempfile.TemporaryDirectory() as directory:
            root = pathlib.Path(directory).resolve()
            for name, text in {**good, **change}.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text, encoding="utf-8")
            tree = checked(kind, root)
        found = {finding[0] for finding in tree.broken}
        if found != ({rule} if rule else set()):
            print(f"self-test: expected {rule or 'nothing'} for {sorted(change)}, found {sorted(found) or 'nothing'}")
            failed += 1
    print(f"self-test: {len(bad) + 1} trees, {failed} wrong")
    return 1 if failed else 0


def main(description, kind, good, bad):
    """Exits with 1 if a rule is broken, or the self-test is wrong."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    args = parser.parse_args()
    if args.self_test:
        sys.exit(self_test(kind, good, bad))
    tree = checked(kind, args.root.resolve())
    for rule, where, text in tree.broken:
        print(f"{where}: {rule}: {text}")
    print(f"{tree.counted}, {len(tree.broken)} rules broken")
    sys.exit(1 if tree.broken else 0)
