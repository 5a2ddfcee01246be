#!/usr/bin/env python3
"""Every interleaving of a thread that takes blocks from a bin and frees into it with a round that takes the bin away: a model
of src/heap/bin.h (BN1, BN2) and of the fast paths in src/heap/theap.h (H1, H7), sequentially consistent.  That a thread's
stores can be seen when the round comes by again is what PR2 in src/heap/presence.h says, and no part of the model.

  bin_model.py [--bug NAME] [--blocks N] [--ops N] [--rounds N] [--ticks N]    one run; a violation shows how it came
  bin_model.py --self-test                                         the protocol holds, and each bug is found

Each load and each store of the thread's fast path is a step, so that `slots++` is two.  The thread may be stopped for any time
between two steps, also in the middle of a change of the bin.  A block in the hands of the program has whatever contents the
program likes, so that a link which is read there leads to any block.

  B1  Each block is at one place: with the program, in the bin or taken from it, or in its page.
  B2  When the thread has settled, slots + (blocks in the bin) is the total, and no block is lost.
  B3  No round works at the theap while its thread is inside.
  B4  Only a theap whose bins were closed counts as emptied.
"""
import argparse
import sys

BUGS = {
    'pop-slots-last': 'malloc changes `slots` when it has the block',
    'push-slots-last': 'free changes `slots` when the block is in the list',
    'keeps-room': 'the round does not change `slots`',
    'no-count': 'the round does not count the list',
    'no-look-again': 'the round does not look again when it has counted',
    'settle-attaches': 'the thread always puts back what was taken',
    'settle-forgets': 'the thread never does',
    'enters-late': 'the thread stores INSIDE when it has made the theap FREE, not before',
    'ticks-closed': 'a tick of the sampler takes the room of a bin that is closed already',
    'closes-ticked': 'the round closes a bin whose room a tick has taken',
    'empties-unclosed': 'the round takes CLOSED to mean that the bins are closed still',
}

NO_SLOTS = -1000
ROOM = 2
NONE = -1

# A state: what the bin has, what was taken, where the blocks are, and where the two parties stand.
FIELDS = ('slots', 'head', 'total', 'next', 'user', 'page', 'taken', 'slots_taken', 'revoked', 'closed', 'inside',
          'tpc', 'tjob', 'treg', 'tblock', 'tlink', 'rpc', 'rwas', 'rcur', 'rleft', 'ops', 'rounds', 'ticks')
INDEX = {name: i for i, name in enumerate(FIELDS)}


class Violation(Exception):
    pass


class State:
    __slots__ = FIELDS

    def __init__(self, values):
        for name, value in zip(FIELDS, values):
            setattr(self, name, value)

    def key(self):
        return tuple(getattr(self, name) for name in FIELDS)

    def copy(self, **changes):
        other = State(self.key())
        for name, value in changes.items():
            setattr(other, name, value)
        return other


def with_next(state, block, value):
    links = list(state.next)
    links[block] = value
    return tuple(links)


def chain(state, first):
    """The blocks of a list that nobody changes."""
    blocks = []
    while first != NONE:
        blocks.append(first)
        if len(blocks) > len(state.next):
            raise Violation('B1: a list without an end')
        first = state.next[first]
    return blocks


# ---- the thread ----------------------------------------------------------------------------------------------------------

def settle(state, bug):
    """_mi_idle_settle, by the thread, which is in the middle of nothing."""
    if not state.closed:
        return state.copy()
    own = chain(state, state.head)
    slots = state.slots
    if not own and slots == NO_SLOTS:  # untouched: what was taken comes back as it was
        has_rest = state.total != state.slots_taken and bug != 'settle-forgets'
        s = state.copy(closed=False, taken=NONE, head=state.taken if has_rest else NONE,
                       slots=state.slots_taken if has_rest else ROOM, total=state.total if has_rest else ROOM)
        check_places(s)
        return s
    if slots < NO_SLOTS / 2:
        slots = state.slots_taken + (slots - NO_SLOTS)
    attach = len(own) != state.total - slots and state.taken != NONE
    if bug == 'settle-attaches':
        attach = state.taken != NONE
    if bug == 'settle-forgets':
        attach = False
    s = state.copy(closed=False)
    if attach:
        if own:
            s.next = with_next(s, own[-1], state.taken)
        else:
            s.head = state.taken
    n = len(chain(s, s.head))
    s.slots = ROOM - n if n < ROOM else 0
    s.total = s.slots + n
    s.taken = NONE
    check_places(s)
    return s


def check_places(s):
    """B1 and B2, when the thread has settled and the round has nothing in hand."""
    places = chain(s, s.head) + list(s.user) + list(s.page)
    if len(places) != len(set(places)):
        raise Violation(f'B1: a block is at two places: {places}')
    if len(places) != len(s.next):
        raise Violation(f'B2: a block is lost: {places}')
    if s.slots > NO_SLOTS / 2 and s.slots + len(chain(s, s.head)) != s.total:
        raise Violation('B2: slots does not count')


# Where a round works at the theap: all between TAKEN and its end but the look at `inside`.
ROUND_WORKS = ('close-slots', 'close-head', 'look', 'count', 'look-again')


def thread_enters(s, bug):
    """_mi_theap_enter and _mi_theap_wait_revoked; then what `tjob` says, in one step, and _mi_theap_leave."""
    if s.tpc == 'enter':
        return [s.copy(tpc='enter-load', inside=True)]
    if s.tpc == 'enter-load':
        if s.revoked == 'FREE':
            return [s.copy(tpc='inside')]
        return [s.copy(tpc='enter-wait')] if s.revoked == 'TAKEN' else [s.copy(tpc='enter-cas', treg=s.revoked)]
    if s.tpc == 'enter-wait':
        return [s.copy(tpc='enter-taken', inside=False)]
    if s.tpc == 'enter-taken':
        if s.revoked == 'TAKEN':
            return []
        return [s.copy(tpc='enter-cas', treg=s.revoked) if bug == 'enters-late' else s.copy(tpc='enter')]
    if s.tpc == 'enter-cas':
        if s.revoked != s.treg:
            return [s.copy(tpc='enter-load', treg=0)]
        return [s.copy(tpc='enter-store' if bug == 'enters-late' else 'inside', revoked='FREE', treg=0)]
    if s.tpc == 'enter-store':
        return [s.copy(tpc='inside', inside=True)]
    if s.tpc == 'inside':
        if s.rpc in ROUND_WORKS:
            raise Violation('B3: a round is at the theap while its thread is inside')
        return slow_malloc(settle(s, bug)) if s.tjob == 'malloc' else slow_free(settle(s, bug))
    return [s.copy(tpc='idle', inside=False)] if s.tpc == 'leave' else []


def slow_malloc(s):
    s.tpc, s.tjob = 'leave', ''
    blocks = chain(s, s.head)
    if blocks:
        return [s.copy(head=s.next[blocks[0]], slots=s.slots + 1, user=s.user | {blocks[0]})]
    free = sorted(s.page)
    if not free:
        return [s]
    s.user, s.page = s.user | {free[0]}, frozenset()
    for block, link in zip(free[1:], free[2:] + [NONE]):
        s.next = with_next(s, block, link)
    s.head = free[1] if len(free) > 1 else NONE
    n = len(free) - 1
    s.slots = ROOM - n if n < ROOM else 0
    s.total = s.slots + n
    return [s]


def slow_free(s):
    return [s.copy(tpc='leave', tjob='', page=s.page | {s.tblock}, user=s.user - {s.tblock}, tblock=NONE)]


def thread_begins(s):
    if s.ops == 0:
        return []
    return ([s.copy(tpc='pop', ops=s.ops - 1)] +
            [s.copy(tpc='push', tblock=b, ops=s.ops - 1) for b in sorted(s.user)])


def thread_pops(s, bug):
    late = bug == 'pop-slots-last'
    if s.tpc == 'pop':
        return [s.copy(tpc='pop-head') if late else s.copy(tpc='pop-slots', treg=s.slots)]
    if s.tpc == 'pop-slots':
        return [s.copy(tpc='pop-head', slots=s.treg + 1)]
    if s.tpc == 'pop-head':
        if s.head != NONE:
            return [s.copy(tpc='pop-next', tblock=s.head)]
        return [s.copy(tpc='enter', tjob='malloc') if late else s.copy(tpc='undo', treg=s.slots)]
    if s.tpc == 'undo':
        return [s.copy(tpc='enter', tjob='malloc', slots=s.treg - 1, treg=0)]
    if s.tpc == 'pop-next':
        return [s.copy(tpc='pop-store', tlink=s.next[s.tblock])]
    if s.tpc == 'pop-store':
        return [s.copy(tpc='late-load' if late else 'idle', head=s.tlink, user=s.user | {s.tblock}, tblock=NONE,
                       treg=1)]
    return []


def thread_pushes(s, bug):
    late = bug == 'push-slots-last'
    if s.tpc == 'push':
        if s.slots - 1 < 0:
            return [s.copy(tpc='enter', tjob='free')]
        return [s.copy(tpc='push-next') if late else s.copy(tpc='push-slots', treg=s.slots)]
    if s.tpc == 'push-slots':
        return [s.copy(tpc='push-next', slots=s.treg - 1)]
    if s.tpc == 'push-next':
        return [s.copy(tpc='push-store', next=with_next(s, s.tblock, s.head))]
    if s.tpc == 'push-store':
        return [s.copy(tpc='late-load' if late else 'idle', head=s.tblock, user=s.user - {s.tblock}, tblock=NONE,
                       treg=-1)]
    if s.tpc == 'late-load':
        return [s.copy(tpc='late-store', treg=s.slots + s.treg)]
    if s.tpc == 'late-store':
        return [s.copy(tpc='idle', slots=s.treg)]
    return []


def thread_steps(s, bug):
    if s.tpc == 'idle':
        return thread_begins(s)
    return thread_pops(s, bug) + thread_pushes(s, bug) + thread_enters(s, bug)


# ---- the round -----------------------------------------------------------------------------------------------------------

def round_closes(s, bug):
    if s.rpc == 'idle' and s.revoked == 'FREE' and s.rounds > 0:
        return [s.copy(revoked='ASKED', rounds=s.rounds - 1)]
    if s.rpc == 'idle' and s.revoked in ('ASKED', 'CLOSED'):
        return [s.copy(rpc='taken', revoked='TAKEN', rwas=s.revoked)]
    if s.rpc == 'taken':
        return [round_decides(s, bug)]
    if s.rpc == 'close-slots' and s.slots < NO_SLOTS / 2 and bug != 'closes-ticked':
        return [s.copy(rpc='idle', revoked='CLOSED', slots_taken=s.total, taken=NONE)]
    if s.rpc == 'close-slots':
        return [s.copy(rpc='close-head', slots_taken=s.slots, slots=s.slots if bug == 'keeps-room' else NO_SLOTS)]
    if s.rpc == 'close-head':
        return [s.copy(rpc='idle', revoked='CLOSED', taken=s.head, head=NONE)]
    return []


def round_decides(s, bug):
    """idle_step."""
    was, s = s.rwas, s.copy(rwas='')
    if s.inside:
        return s.copy(rpc='idle', revoked='CLOSED' if s.closed else 'FREE')
    if (was == 'ASKED') if bug == 'empties-unclosed' else not s.closed:
        return s.copy(rpc='close-slots', closed=True)
    if not s.closed:
        raise Violation('B4: a theap counts as emptied whose bins are open')
    return s.copy(rpc='look')


def untouched(s, bug):
    return s.head == NONE and (s.slots == NO_SLOTS or bug == 'keeps-room')


def links_read(s, block):
    """What a link may be found to be: that of a block which the program has is anything."""
    return [NONE] + list(range(len(s.next))) if block in s.user else [s.next[block]]


def round_takes(s, bug):
    if s.rpc == 'look':
        if s.taken == NONE or not untouched(s, bug):
            return [s.copy(rpc='idle', revoked='EMPTIED')]
        return [s.copy(rpc='count', rcur=s.taken, rleft=s.total - s.slots_taken)]
    if s.rpc == 'count':
        if s.rcur != NONE and s.rleft > 0:
            return [s.copy(rcur=link, rleft=s.rleft - 1) for link in links_read(s, s.rcur)]
        fits = (s.rcur == NONE and s.rleft == 0) or bug == 'no-count'
        return [s.copy(rpc='look-again' if fits else 'idle', revoked='TAKEN' if fits else 'EMPTIED', rcur=NONE, rleft=0)]
    if s.rpc == 'look-again':
        if bug != 'no-look-again' and not untouched(s, bug):
            return [s.copy(rpc='idle', revoked='EMPTIED')]
        return [round_gives_back(s)]
    return []


def round_gives_back(s):
    blocks = chain(s, s.taken)
    in_hand = set(s.user) | set(s.page) | set(chain(s, s.head)) | ({s.tblock} - {NONE})
    if in_hand & set(blocks):
        raise Violation(f'B1: a block that is in use, {sorted(in_hand & set(blocks))}, is given back')
    return s.copy(rpc='idle', revoked='EMPTIED', taken=NONE, slots_taken=s.total, page=s.page | set(blocks))


def sampler_ticks(s, bug):
    """_mi_sampler_tick, between two steps of the round: the same lock."""
    if s.rpc != 'idle' or s.ticks == 0 or (s.closed and bug != 'ticks-closed'):
        return []
    return [s.copy(slots=NO_SLOTS, ticks=s.ticks - 1)]


# ---- all of it -----------------------------------------------------------------------------------------------------------

def first_state(n_blocks, n_ops, n_rounds, n_ticks):
    links = tuple(i + 1 if i + 1 < n_blocks else NONE for i in range(n_blocks))
    slots = max(ROOM - n_blocks, 0)
    values = dict(slots=slots, head=0, total=slots + n_blocks, next=links, user=frozenset(), page=frozenset(), taken=NONE,
                  slots_taken=0, revoked='FREE', closed=False, inside=False, tpc='idle', tjob='', treg=0, tblock=NONE,
                  tlink=NONE, rpc='idle', rwas='', rcur=NONE, rleft=0, ops=n_ops, rounds=n_rounds, ticks=n_ticks)
    return State([values[name] for name in FIELDS])


def explore(n_blocks, n_ops, n_rounds, n_ticks, bug=None):
    """The number of states, or a violation and the steps that lead to it."""
    start = first_state(n_blocks, n_ops, n_rounds, n_ticks)
    came = {start.key(): None}
    todo = [start]
    while todo:
        state = todo.pop()
        try:
            after = thread_steps(state, bug) + round_closes(state, bug) + round_takes(state, bug) + sampler_ticks(state, bug)
            if state.tpc == 'idle' and state.rpc == 'idle':  # the thread may come by at any time, and all must be whole
                check_places(settle(state, bug))
        except Violation as violation:
            return str(violation), trace(came, state.key())
        for s in after:
            key = s.key()
            if key not in came:
                came[key] = state.key()
                todo.append(s)
    return len(came), None


def trace(came, key):
    lines = []
    while key is not None:
        lines.append(' '.join(f'{n}={key[INDEX[n]]}' for n in ('tpc', 'rpc', 'inside', 'slots', 'head', 'taken', 'revoked', 'user')))
        key = came[key]
    return lines[::-1]


def run(args, bug):
    result, steps = explore(args.blocks, args.ops, args.rounds, args.ticks, bug)
    if steps is None:
        print(f'{bug or "the protocol"}: holds in {result} states')
        return True
    print(f'{bug or "the protocol"}: {result}, after {len(steps)} steps')
    if not args.self_test:
        print('\n'.join(steps))
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bug', choices=sorted(BUGS))
    parser.add_argument('--blocks', type=int, default=3)
    parser.add_argument('--ops', type=int, default=5)
    parser.add_argument('--rounds', type=int, default=2)
    parser.add_argument('--ticks', type=int, default=1)
    parser.add_argument('--self-test', action='store_true')
    args = parser.parse_args()
    ok = run(args, args.bug)
    if args.self_test:
        ok = ok and not any([run(args, bug) for bug in sorted(BUGS)])
    return 0 if ok else 1


if __name__ == '__main__':
    sys.exit(main())
