"""JSON, pickles, objects, strings and regular expressions in Python, in as many rounds as the argument says."""
import json
import pickle
import random
import re
import sys
import zlib

ROUNDS = int(sys.argv[1])
SYLLABLES = "ka lo mi ter un es po ri dan vo sel gra".split()
generator = random.Random(1)
checksum = 0


def check(value):
    global checksum
    data = value if isinstance(value, bytes) else str(value).encode()
    checksum = zlib.crc32(data, checksum)


def require(condition, what):
    if not condition:
        print("FAILED:", what)
        sys.exit(1)


def word():
    return "".join(generator.choice(SYLLABLES) for _ in range(generator.randrange(1, 5)))


def record(number):
    return {"id": number, "name": f"{word()} {word()}", "tags": [word() for _ in range(generator.randrange(6))],
            "at": {"x": generator.randrange(1000), "y": generator.randrange(1000) / 8}, "is_good": number % 3 == 0}


def json_and_pickle():
    records = [record(i) for i in range(8000)]
    text = json.dumps(records)
    back = json.loads(text)
    require(back == records, "JSON")
    data = pickle.dumps(records, protocol=4)
    require(pickle.loads(data) == records, "pickle")
    check(text)
    check(json.dumps(back, indent=1, sort_keys=True))


class Account:
    def __init__(self, name):
        self.name = name
        self.balance = 0
        self.history = []

    def transfer(self, other, amount):
        self.balance -= amount
        other.balance += amount
        self.history.append((other.name, -amount))
        other.history.append((self.name, amount))


def objects():
    accounts = [Account(f"account {i}") for i in range(6000)]
    for _ in range(80000):
        a, b = generator.choice(accounts), generator.choice(accounts)
        a.transfer(b, generator.randrange(100000))
    by_balance = sorted(accounts, key=lambda account: (account.balance, account.name))
    groups = {}
    for account in by_balance:
        groups.setdefault(account.balance % 97, set()).add(account.name)
    require(sum(account.balance for account in accounts) == 0, "balances")
    check([(k, len(v)) for k, v in sorted(groups.items())])
    check(by_balance[0].history)


def strings():
    text = " ".join(word() for _ in range(60000))
    counts = {}
    for match in re.finditer(r"[a-z]+", text):
        counts[match.group()] = counts.get(match.group(), 0) + 1
    check(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:100])
    check(re.sub(r"\b([a-z])([a-z]*)", lambda m: m.group(2) + m.group(1).upper() + "ay", text))
    lines = []
    for i, part in enumerate(text.split(" ")):
        line = f"{i:06d} {part:>20} {part[::-1]} {part.upper()!r}"
        lines.append(line.replace("a", "aa"))
    check("\n".join(lines))
    built = ""
    for line in lines[:4000]:
        built += line
    check(built)


def numbers():
    # Integers of thousands of digits: blocks of all sizes up to 10 KiB.
    value = 1
    for i in range(1, 1200):
        value *= 2 * i + 1
    check(value % (10**9 + 7))
    primes = [p for p in range(2, 4000) if all(p % d for d in range(2, int(p**0.5) + 1))]
    check(sum(pow(p, 150, (1 << 521) - 1) for p in primes))


for _ in range(ROUNDS):
    json_and_pickle()
    objects()
    strings()
    numbers()
print(f"python {ROUNDS}: {checksum:08x}")
