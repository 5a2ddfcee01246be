#!/usr/bin/env python3
"""Which law for giving memory back?  Candidates, over curves of live memory (docs/decisions/027).

A law decides once a round, every 100 ms, how much of the memory that is free goes back to the system.  The cost is what is taken
again, and what stays: MiB x s of free memory that is backed.  A curve is a list of live MiB, one each 10 ms: made here, or
read from a file of lines `SECONDS MIB`.

    bench/retention.py [CURVE...]
"""
import copy
import math
import random
import sys

STEP = 0.01  # seconds between two samples
ROUND = 10  # samples
COST = 0.0004  # seconds to give back a MiB and to take it again: 0.4 ns a byte


class Interval:
    """What was free for all of the last `window` seconds; all, if the program did nothing for three rounds."""

    def __init__(self, window=0.1, at_once=True):
        self.n, self.at_once, self.lows = round(window * 10), at_once, []

    def give(self, now, low, free, fresh, idle):
        self.lows = (self.lows + [low])[-self.n :]
        n = free if idle and self.at_once else min(self.lows) if len(self.lows) == self.n else 0
        self.lows = [x - min(x, n) for x in self.lows]
        return n


class Decay:
    """A high-water mark that falls towards what is in use: half of what is free goes back in each `half` seconds."""

    def __init__(self, half):
        self.share = 1 - 0.5 ** (0.1 / half)

    def give(self, now, low, free, fresh, idle):
        return free if free < 1 else min(low, free * self.share)


class Recall:
    """As Interval; but each MiB that was free for a round and was needed again buys `hold` seconds, up to `most` from now,
    in which only that goes back which was free for `most` / 2 to `most`."""

    def __init__(self, hold=0.01, most=4.0):
        self.hold, self.most = hold, most
        self.until = self.last_give = self.half_from = -math.inf
        self.given = self.seen = 0
        self.halves = [math.inf, math.inf]

    def give(self, now, low, free, fresh, idle):
        recalled = max(0, self.seen - low) + min(self.given, fresh)
        self.given -= min(self.given, fresh)
        if recalled:
            base = max(self.until, self.last_give)
            self.until = min(now + self.most, base + self.hold * recalled)
        self.halves[1] = min(self.halves[1], low)
        n = free if idle else low
        if now < self.until:
            n = min(self.halves)
        if now - self.half_from >= self.most / 2:
            self.halves, self.half_from = [self.halves[1], math.inf], now
        if n > 0:
            self.given = n + (self.given if now - self.last_give < self.most else 0)
            self.last_give = now
        self.halves = [x - min(x, n) for x in self.halves]
        self.seen = low - min(low, n)
        return n


# ---- curves -------------------------------------------------------------------------------------------------------------


def phases(mib, pause, busy, rounds, keep=0.1):
    ramp = [mib * (keep + (1 - keep) * i / (busy * 60)) for i in range(round(busy * 60))]
    fall = [mib * (1 - (1 - keep) * i / (busy * 40)) for i in range(round(busy * 40))]
    return (ramp + fall + [mib * keep] * round(pause * 100)) * rounds


def noisy(seed, mib, seconds, speed, jitter):
    rng, level, out = random.Random(seed), 0.5, []
    for i in range(round(seconds * 100)):
        level = min(1, max(0, level + rng.gauss(0, speed)))
        out.append(mib * (0.1 + 0.9 * level) + rng.random() * jitter)
    return out


def bursts(seed, mib, seconds, every):
    rng, out = random.Random(seed), []
    while len(out) < seconds * 100:
        height, n = mib * rng.random() ** 2, rng.randrange(5, 60)
        out += [mib / 20 + height * min(1, 2 * i / n) for i in range(n)]
        out += [mib / 20] * round(rng.expovariate(1 / every) * 100)
    return out


CURVES = {
    "swing 400 MiB, 150 ms": phases(400, 0.15, 0.3, 40),
    "swing 400 MiB, 0.5 s": phases(400, 0.5, 0.3, 30),
    "swing 400 MiB, 2 s": phases(400, 2, 0.3, 12),
    "swing 400 MiB, 6 s": phases(400, 6, 0.3, 6),
    "swing 10 MiB, 150 ms": phases(10, 0.15, 0.02, 100),
    "swing 1 GiB, 1 s": phases(1000, 1, 0.8, 12),
    "swing 1 GiB, 5 s": phases(1000, 5, 0.8, 6),
    "growing": [i / 10 for i in range(6000)],
    "one burst, then idle": phases(500, 0, 1, 1) + [50] * 3000,
    "burst, then a steady jitter": phases(1000, 0, 1, 1, 0.3) + noisy(1, 10, 30, 0.05, 100),
    "server, bursts each 0.3 s": bursts(2, 300, 40, 0.3),
    "server, bursts each 3 s": bursts(3, 300, 60, 3),
    "server, random walk": noisy(4, 500, 60, 0.02, 5),
    "day curve (60 s)": [250 + 200 * math.sin(i / 955) + 10 * math.sin(i / 7) for i in range(6000)],
    "compiler, 30 files": [v for i in range(30) for v in phases(80 + 37 * i % 250, 0.05, 0.5, 1)],
}
LAWS = {
    "100 ms, idle at once": Interval(),
    "1 s": Interval(1, False),
    "4 s": Interval(4, False),
    "decay, half in 0.35 s": Decay(0.35),
    "decay, half in 1 s": Decay(1),
    "recall 5 ms, 4 s": Recall(0.005),
    "recall 10 ms, 2 s": Recall(0.01, 2.0),
    "recall 10 ms, 4 s": Recall(),
    "recall 10 ms, 8 s": Recall(0.01, 8.0),
    "recall 20 ms, 4 s": Recall(0.02),
}


def run(law, live):
    """The share of time for what is taken again, and the mean of the free memory that stays, as a share of the peak."""
    backed = live[0]
    high, again, stays, low, fresh, still = live[0], 0.0, 0.0, math.inf, 0.0, 0
    for i, now in enumerate(live):
        taken = max(0, now - backed)
        new = max(0, now - high)  # never backed before: no law saves that
        again, fresh, high = again + taken - min(taken, new), fresh + taken, max(high, now)
        backed = max(backed, now)
        low = min(low, backed - now)
        still = still + 1 if i and abs(now - live[i - 1]) < 0.01 else 0
        if i % ROUND == 0:
            n = min(backed - now, law.give(i * STEP, low, backed - now, fresh, still >= 30))
            backed -= n
            low, fresh = backed - now, 0
        stays += (backed - now) * STEP
    seconds = len(live) * STEP
    return again * COST / seconds, stays / seconds / max(live)


def idle_seconds(law, live):
    """How long after the end of a curve all but 2 % of the peak is back."""
    tail = [min(live)] * 1500
    peak, backed, low, fresh, end = max(live), live[0], math.inf, 0, None
    for i, now in enumerate(live + tail):
        fresh += max(0, now - backed)
        backed = max(backed, now)
        low = min(low, backed - now)
        if i % ROUND == 0:
            n = min(backed - now, law.give(i * STEP, low, backed - now, fresh, i > len(live) + 30))
            backed -= n
            low, fresh = backed - now, 0
        if backed - now > peak / 50:
            end = i
    return max(0, (end or 0) - len(live) + 1) * STEP


def read(path):
    out = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            seconds, mib = map(float, line.split()[:2])
            out += [mib] * max(0, round(seconds / STEP) + 1 - len(out))
    return out


def main():
    curves = {path: read(path) for path in sys.argv[1:]} or CURVES
    for name, live in curves.items():
        print(f"\n{name}\n  {'law':24}{'again, % of time':>18}{'stays, % of peak':>18}{'s until 2 %':>13}")
        for label, law in LAWS.items():
            again, stays = run(copy.deepcopy(law), live)
            print(f"  {label:24}{again * 100:18.2f}{stays * 100:18.1f}{idle_seconds(copy.deepcopy(law), live):13.1f}")


if __name__ == "__main__":
    main()
