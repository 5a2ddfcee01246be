#!/usr/bin/env python3
"""Every interleaving of threads over one page: a model of the protocol in src/page/page_word.h and of those who use it
(src/heap/pool.c, outbox.c, theap.c), sequentially consistent.  What weaker memory orders do is for test/model/relacy.

  page_word_model.py [--bug NAME] [--threads N] [--blocks N] [--claim-at N]    one run; a violation shows how it came
  page_word_model.py --self-test                                               the protocol holds, and each bug is found

What is one step: an atomic operation on the word, on `home` or on the lock, together with the accesses to plain fields
before or after it, which only the holder of the page makes (M2 checks that).  A compare-and-swap that fails because the
word changed, and tries again, is no step: nothing happened.  What programs do with blocks is not restricted: any thread
may free any block that is in use.  Limits (room of a bin, size of a batch, full pages to keep) are left open: whatever
a limit may decide is tried both ways.  A thread's fast path may run at any time, also in the middle of its own slow
path: so it does when another thread has revoked the theap and lets go of its pages.  A theap that was released is used
again by the next thread (H5).  The owner may make the page a gap page, of another capacity, at any time (GP4); that only its last
free claims it, and that it is never parked, is what differs then.  A spare page is one that is gone and comes back with its blocks
made: nobody else looks at it in between (EP1).

  M1  Each block is at one place.
  M2  One party at a time has the page (I1).
  M3  Nobody touches a page that was given back.
  M4  used, extended and count say what is so (P1).
  M5  A parked page has fewer free blocks than claim_at, a shared page fewer than all.
  M6  A page is in the pool while SHARED, and until its claimer has taken it out (S1).
  M7  The page can always be given back, whatever happened before: nothing leaks, nobody waits for ever.
"""
import argparse
import multiprocessing
import sys
import time

BUGS = {
    'adopt-home-late': 'the adopter writes home after the word (P4)',
    'owns-home-first': 'owns reads home before the state (P4)',
    'adopt-claimed': 'the adopter takes a page that a claimer has',
    'share-drops-chain': 'share does not look at the chain',
    'park-drops-chain': 'park does not look at the chain',
    'own-drops-chain': 'a claimer becomes the owner without taking the chain',
    'own-not-home': 'a claimer becomes the owner of a page with another home',
    'claim-stays-in-pool': 'a claimer leaves the page in the pool',
    'remove-unlocked': 'a claimer takes the page out of the pool without the lock (I4)',
    'share-stays-in-pool': 'share leaves the page in the pool when it fails',
    'claim-twice': 'a push to a page that is CLAIMED claims it too',
    'claim-never-parked': 'a push never claims a PARKED page',
    'claim-never-shared': 'a push never claims a SHARED page',
    'regain-forgets-unmade': 'regain takes blocks not made yet for free ones',
    'release-parks-unmade': 'a page with nothing but unmade blocks left is parked',
    'capacity-early': 'a push reads the capacity before the word (GP4)',
}

OWNED, PARKED, SHARED, CLAIMED, GONE = range(5)
STATE_NAMES = ('OWNED', 'PARKED', 'SHARED', 'CLAIMED', 'gone')
NO_LIST, QUEUE, FULL = range(3)

# A state is a tuple of the page and all threads.  Of the page: its word (state, count, length of the chain), its plain
# fields (length of the free list, blocks not made yet, used), whether the pool has it, the blocks the program has, and whether it is a
# gap page.
ST, COUNT, CHAIN, FREE, UNMADE, USED, LINKED, USER, GAPS, THREADS = range(10)

# Of each thread: is it the page's home, has it the pool's lock, blocks in its bin and batch, which of its lists has the
# page, has it a theap, where it stands, and what it carries: blocks and, for an adopter, the count in the word it got.
# Threads are alike, so they are kept sorted.  Blocks are alike, so they are counted.
HOME, LOCK, BIN, BATCH, LISTED, LIVE, PC, HAND, HAND_COUNT = range(9)

(IDLE,
 OWNS_1, OWNS_2,                                                         # theap_give_back
 ADOPT_LOCKED, ADOPT_FOUND, ADOPT_WORD, ADOPT_HOME_LATE, ADOPT_UNLOCK, ADOPT_REGAIN,  # _mi_pool_adopt
 CLAIM_REMOVE, CLAIM_UNLINK, CLAIM_TAKE, CLAIM_DECIDE, CLAIM_OWN,        # outbox_claimed
 CLAIM_SHARE, CLAIM_SHARE_LOCKED, CLAIM_UNLOCK, CLAIM_RETAKE,
 RELEASE_TAKE, RELEASE_PARK, RELEASE_SHARE, RELEASE_SHARE_LOCKED, RELEASE_UNLOCK,  # theap_page_release
 SHARED_UNLOCK,
 PUSH_SEEN) = range(25)                                                  # _mi_page_word_push, with capacity-early only

CLAIMERS = range(CLAIM_REMOVE, CLAIM_RETAKE + 1)
OWNERS = (ADOPT_HOME_LATE, ADOPT_UNLOCK, ADOPT_REGAIN, *range(RELEASE_TAKE, RELEASE_UNLOCK + 1))
NOT_REGAINED = (ADOPT_HOME_LATE, ADOPT_UNLOCK, ADOPT_REGAIN, CLAIM_REMOVE, CLAIM_UNLINK, CLAIM_TAKE)

GAPS_MORE = 100  # capacity of a gap page, beyond its blocks

OTHERS_KEEP, OTHERS_LOSE = False, True  # what a step does to `home` of the other threads


class Violation(Exception):
    pass


def make_steps(bug, blocks, claim_at):
    """The function from a state to all steps that can come next: (what, number of the thread, state)."""
    (bug_home_late, bug_home_first, bug_adopt_claimed, bug_share, bug_park, bug_own, bug_not_home, bug_in_pool,
     bug_unlocked, bug_share_in_pool, bug_twice, bug_never_parked, bug_never_shared, bug_regain,
     bug_parks_unmade, bug_capacity) = (bug == name for name in BUGS)

    def steps(s):
        st, count, chain, free, unmade, used, linked, user, gaps, threads = s
        extended, more = blocks - unmade, GAPS_MORE * gaps
        is_locked = any(t[LOCK] for t in threads)
        out = []

        for i, thread in enumerate(threads):
            if i > 0 and thread == threads[i - 1]: continue  # what one of twins does is enough
            home, lock, bin, batch, listed, live, pc, hand, hand_count = thread

            def step(what, pc=pc, home=home, lock=lock, bin=bin, batch=batch, listed=listed, live=live, hand=0,
                     hand_count=0, others=OTHERS_KEEP, st=st, count=count, chain=chain, free=free, unmade=unmade,
                     used=used, linked=linked, user=user, gaps=gaps):
                rest = threads[:i] + threads[i + 1:]
                if others == OTHERS_LOSE: rest = tuple((0,) + t[1:] for t in rest)
                after = sorted(rest + ((home, lock, bin, batch, listed, live, pc, hand, hand_count),))
                out.append((what, i, (st, count, chain, free, unmade, used, linked, user, gaps, tuple(after))))

            def delete(what):
                step(what, IDLE, home=0, others=OTHERS_LOSE, listed=NO_LIST, st=GONE, count=0, chain=0, free=0,
                     unmade=0, used=0, gaps=0)

            def push(what, n, seen=None, **mine):
                capacity = blocks + more if seen is None else seen
                if bug_capacity and seen is None:
                    step(f'{what}: capacity', PUSH_SEEN, hand=n, hand_count=capacity, **mine)
                    return
                total, now, then = count + n, st, IDLE
                if st == GONE: raise Violation('M3: push to a page that was given back')
                if st == PARKED and total >= claim_at and not bug_never_parked: now, then = CLAIMED, CLAIM_TAKE
                elif st == SHARED and total == capacity and not bug_never_shared: now, then = CLAIMED, CLAIM_REMOVE
                elif st == CLAIMED and total >= claim_at and bug_twice: then = CLAIM_TAKE
                if then == CLAIM_REMOVE and bug_in_pool: then = CLAIM_TAKE
                step(what, then, st=now, count=total, chain=chain + n, **mine)

            # The fast path looks at nothing but its bin and `home`.
            if bin and live: step('malloc: from the bin', bin=bin - 1, user=user + 1, hand=hand, hand_count=hand_count)
            if user and home and live and not gaps:
                step('free: to the bin', bin=bin + 1, user=user - 1, hand=hand, hand_count=hand_count)

            if pc == IDLE and not live:
                step('a thread gets the theap', live=1)
                if user: push('free: push, without a theap', 1, user=user - 1)

            elif pc == IDLE:
                if user and home: step('free: the bin is full', OWNS_1, hand=1, user=user - 1)
                if user and not home: step('free: to the outbox', batch=batch + 1, user=user - 1)
                if bin: step('flush: a block out of the bin', OWNS_1, hand=1, bin=bin - 1)
                if batch: push('outbox: push', batch, batch=0)
                if not bin:  # refill
                    if listed != QUEUE:
                        if not is_locked: step('adopt: lock', ADOPT_LOCKED, lock=1)
                        if st == GONE: step('new page', home=1, listed=QUEUE, st=OWNED, unmade=blocks)
                        if st == GONE: step('spare page', home=1, listed=QUEUE, st=OWNED, free=blocks)
                    elif free: step('refill: free list', bin=free - 1, user=user + 1, free=0, used=extended)
                    elif chain: step('refill: chain', bin=chain - 1, user=user + 1, chain=0, count=0)
                    elif unmade: step('refill: new block', user=user + 1, unmade=unmade - 1, used=used + 1)
                    elif not gaps: step('refill: page is full', listed=FULL)
                if listed == FULL:
                    if chain == 0 or bug_park: step('park', listed=NO_LIST, st=PARKED, count=0, chain=0)
                    else: step('park: fails', listed=QUEUE)
                if listed == QUEUE and not gaps: step('becomes a gap page', free=free + unmade, unmade=0, gaps=1)
                if listed: step('release', RELEASE_TAKE, listed=NO_LIST)
                elif not bin and not batch: step('the thread exits', live=0)

            elif pc == PUSH_SEEN: push('push', hand, seen=hand_count)

            elif pc == OWNS_1:
                if st == GONE: raise Violation('M3: looks at a page that was given back')
                if home if bug_home_first else st == OWNED: step('owns: maybe', OWNS_2, hand=1)
                else: step('owns: no; to the outbox', IDLE, batch=batch + 1)
            elif pc == OWNS_2:
                if not (st == OWNED if bug_home_first else home): step('owns: no; to the outbox', IDLE, batch=batch + 1)
                elif not listed: raise Violation('M2: frees into the page of another as if it owned it')
                else:
                    step('owns: yes', IDLE, listed=QUEUE, free=free + 1, used=used - 1)
                    if used == 1: delete('owns: yes, the page is empty')

            elif pc == ADOPT_LOCKED:
                if not linked: step('adopt: unlock, the pool is empty', IDLE, lock=0)
                else: step('adopt: finds a page', ADOPT_WORD if bug_home_late else ADOPT_FOUND)
            elif pc == ADOPT_FOUND:
                if st == GONE: raise Violation('M3: adopts a page that was given back')
                step('adopt: home', ADOPT_WORD, home=1, others=OTHERS_LOSE)
            elif pc == ADOPT_WORD:
                if st == SHARED or (st == CLAIMED and bug_adopt_claimed):
                    step('adopt: word', ADOPT_HOME_LATE if bug_home_late else ADOPT_UNLOCK, hand=chain,
                         hand_count=count, st=OWNED, count=0, chain=0, linked=0)
                else: step('adopt: unlock, it is claimed', IDLE, lock=0)
            elif pc == ADOPT_HOME_LATE:
                step('adopt: home', ADOPT_UNLOCK, home=1, others=OTHERS_LOSE, hand=hand, hand_count=hand_count)
            elif pc == ADOPT_UNLOCK: step('adopt: unlock', ADOPT_REGAIN, lock=0, hand=hand, hand_count=hand_count)
            elif pc == ADOPT_REGAIN:
                n_free = hand_count - more - (0 if bug_regain else unmade)
                step('adopt: regain', IDLE, listed=QUEUE, free=hand, used=extended - n_free)

            elif pc == CLAIM_REMOVE:
                if bug_unlocked: step('claimer: out of the pool, no lock', CLAIM_TAKE, linked=0)
                elif not is_locked: step('claimer: lock', CLAIM_UNLINK, lock=1)
            elif pc == CLAIM_UNLINK: step('claimer: out of the pool, unlock', CLAIM_TAKE, lock=0, linked=0)
            elif pc == CLAIM_TAKE:
                n_free = count - more - (0 if bug_regain else unmade)
                step('claimer: take', CLAIM_DECIDE, count=0, chain=0, free=chain, used=extended - n_free)
            elif pc == CLAIM_DECIDE:
                if used == 0: delete('claimer: deletes the page')
                else: step('claimer: home', CLAIM_OWN if live and (home or bug_not_home) else CLAIM_SHARE)
            elif pc == CLAIM_OWN:
                n_free = 0 if bug_own else chain
                step('claimer: own', IDLE, listed=QUEUE, st=OWNED, count=0, chain=0, free=free + n_free,
                     used=used - n_free)
            elif pc == CLAIM_RETAKE:
                step('claimer: take again', CLAIM_DECIDE, count=0, chain=0, free=free + chain, used=used - chain)

            elif pc in (CLAIM_SHARE, RELEASE_SHARE):
                if not is_locked:
                    step('share: lock', CLAIM_SHARE_LOCKED if pc == CLAIM_SHARE else RELEASE_SHARE_LOCKED, lock=1)
            elif pc in (CLAIM_SHARE_LOCKED, RELEASE_SHARE_LOCKED):
                if chain == 0 or bug_share:
                    step('share: word', SHARED_UNLOCK, st=SHARED, count=blocks + more - used, chain=free, free=0, linked=1)
                else:
                    step('share: fails', CLAIM_UNLOCK if pc == CLAIM_SHARE_LOCKED else RELEASE_UNLOCK,
                         linked=1 if bug_share_in_pool else 0)
            elif pc == CLAIM_UNLOCK: step('share: unlock', CLAIM_RETAKE, lock=0)
            elif pc == RELEASE_UNLOCK: step('share: unlock', RELEASE_TAKE, lock=0)
            elif pc == SHARED_UNLOCK: step('share: unlock', IDLE, lock=0)

            elif pc == RELEASE_TAKE:
                if used == chain: delete('release: deletes the page')
                else:
                    has_room = free + chain > 0 or gaps or (unmade > 0 and not bug_parks_unmade)
                    step('release: take', RELEASE_SHARE if has_room else RELEASE_PARK, count=0, chain=0,
                         free=free + chain, used=used - chain)
            elif pc == RELEASE_PARK:
                if chain == 0: step('release: park', IDLE, st=PARKED)
                else: step('release: park fails', RELEASE_TAKE)
        return out

    return steps


def make_check(blocks, claim_at):
    """The function that raises a Violation for a state that must not be."""

    def check(s):
        st, count, chain, free, unmade, used, linked, user, gaps, threads = s
        out, carried, n_owners, n_claimers, n_removing, is_regained = user, 0, 0, 0, 0, True
        for t in threads:
            pc = t[PC]
            out += t[BIN] + t[BATCH]
            if pc in (OWNS_1, OWNS_2, PUSH_SEEN): out += t[HAND]
            else: carried += t[HAND]
            if t[LISTED] or pc in OWNERS: n_owners += 1
            if pc in CLAIMERS: n_claimers += 1
            if pc in (CLAIM_REMOVE, CLAIM_UNLINK): n_removing += 1
            if pc in NOT_REGAINED: is_regained = False
        if (n_owners, n_claimers) != (st == OWNED, st == CLAIMED):
            raise Violation(f'M2: {n_owners} owners and {n_claimers} claimers of a page that is {STATE_NAMES[st]}')
        if linked != (st == SHARED or n_removing > 0): raise Violation(f'M6: {"" if linked else "not "}in the pool')
        if sum(t[LOCK] for t in threads) > 1: raise Violation('two threads have the lock')
        if st == GONE:
            if out or carried: raise Violation('M3: the page was given back, but there are blocks of it')
            return
        if out + carried + chain + free + unmade != blocks: raise Violation('M1: a block is lost, or there twice')
        if st == PARKED and chain >= claim_at: raise Violation('M5: parked with many free blocks')
        if st == SHARED and chain + unmade == blocks: raise Violation('M5: shared with no block in use')
        if st == PARKED and unmade: raise Violation('M4: parked with blocks that are not made yet')
        if st == PARKED and gaps: raise Violation('GP4: a gap page is parked')
        in_count = chain + (unmade + GAPS_MORE * gaps if st == SHARED or (st == CLAIMED and not is_regained) else 0)
        if count != in_count: raise Violation(f'M4: count is {count}, should be {in_count}')
        if st in (OWNED, CLAIMED) and is_regained and not used == blocks - unmade - free == out + chain:
            raise Violation(f'M4: used is {used}, should be {out + chain}')

    return check


def start_state(n_threads):
    nobody = (0, 0, 0, 0, NO_LIST, 0, IDLE, 0, 0)
    return (GONE, 0, 0, 0, 0, 0, 0, 0, 0, (nobody,) * n_threads)


def way_to(s, parents):
    way = []
    while s is not None:
        parent, what = parents[s]
        way.append((what, s))
        s = parent
    return way[::-1]


def show(way):
    for what, s in way:
        st, count, chain, free, unmade, used, linked, user, gaps, threads = s
        print(f'  {what:36} {STATE_NAMES[st]:8} count {count} chain {chain} free {free} unmade {unmade} used {used}'
              f'{" in pool" if linked else "":8}{" gaps" if gaps else ""}  program {user}', end='')
        for t in threads:
            print(f' | {"home " if t[HOME] else ""}{"lock " if t[LOCK] else ""}bin {t[BIN]} batch {t[BATCH]}', end='')
            print(f'{("", " queue", " full")[t[LISTED]]}{" at work" if t[PC] else ""}', end='')
        print()


def explore(bug='', n_threads=3, blocks=3, claim_at=2):
    """Visits all states, nearest first.  Returns (violation or None, way to it, states, steps)."""
    steps, check = make_steps(bug, blocks, claim_at), make_check(blocks, claim_at)
    start = start_state(n_threads)
    numbers, order, parents, back = {start: 0}, [start], {start: (None, 'start')}, [[]]
    n_steps, places = 0, set()
    for at, s in enumerate(order):
        try:
            nexts = steps(s)
        except Violation as v:
            return str(v), way_to(s, parents), len(order), n_steps
        n_steps += len(nexts)
        for what, _, then in nexts:
            number = numbers.get(then)
            if number is None:
                parents[then] = (s, what)
                try:
                    check(then)
                except Violation as v:
                    return str(v), way_to(then, parents), len(order), n_steps
                numbers[then] = number = len(order)
                order.append(then)
                places.update(t[PC] for t in then[THREADS])
                back.append([])
            back[number].append(at)
    # M7: from where can the start be reached again?
    reached, todo = bytearray(len(order)), [0]
    reached[0] = 1
    while todo:
        for before in back[todo.pop()]:
            if not reached[before]:
                reached[before] = 1
                todo.append(before)
    stuck = reached.find(0)
    if stuck >= 0:
        return 'M7: the page cannot be given back any more', way_to(order[stuck], parents), len(order), n_steps
    if bug == '' and claim_at < blocks and places != set(range(SHARED_UNLOCK + 1)) - {ADOPT_HOME_LATE}:
        return 'the model: there are steps that never happen', [], len(order), n_steps
    return None, [], len(order), n_steps


def run(arguments):
    since = time.monotonic()
    violation, way, n_states, n_steps = explore(*arguments)
    return arguments, violation, way, n_states, n_steps, time.monotonic() - since


def self_test(args):
    """The protocol in several sizes, then each bug."""
    sizes = [(3, 3, 2)] + [(3, 4, claim_at) for claim_at in range(1, 5)] + [(4, 4, 2), (3, 5, 3)]
    runs = [('', *size) for size in sizes]
    runs += [(bug, args.threads, args.blocks, args.claim_at) for bug in BUGS]
    n_wrong = 0
    with multiprocessing.Pool() as pool:
        for arguments, violation, way, n_states, n_steps, seconds in pool.imap(run, runs):
            bug, n_threads, blocks, claim_at = arguments
            is_wrong = (violation is None) != (bug == '')
            n_wrong += is_wrong
            name = bug or f'no bug: {n_threads} threads, {blocks} blocks, claim_at {claim_at}'
            print(f'{"WRONG" if is_wrong else "ok":6} {name:40} {n_states:7} states {n_steps:8} steps {seconds:5.1f} s '
                  f'  {violation or "holds"}', flush=True)
            if is_wrong and violation: show(way)
    return 1 if n_wrong else 0


def main():
    parser = argparse.ArgumentParser(description='Model of the page protocol.', epilog='bugs: ' + '; '.join(
        f'{name}: {text}' for name, text in BUGS.items()))
    parser.add_argument('--self-test', action='store_true')
    parser.add_argument('--bug', choices=BUGS, default='')
    parser.add_argument('--threads', type=int, default=3)
    parser.add_argument('--blocks', type=int, default=3)
    parser.add_argument('--claim-at', type=int, default=2)
    args = parser.parse_args()
    if args.self_test: return self_test(args)
    _, violation, way, n_states, n_steps, seconds = run((args.bug, args.threads, args.blocks, args.claim_at))
    print(f'{n_states} states, {n_steps} steps, {seconds:.1f} s: {violation or "the protocol holds"}')
    show(way)
    return 1 if violation else 0


if __name__ == '__main__':
    sys.exit(main())
