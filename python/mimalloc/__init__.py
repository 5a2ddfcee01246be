"""Tools for the mimalloc memory allocator: the command `mimalloc`, and the statistics of the process at hand.

    python -m mimalloc run prog.py      starts a program with the allocator preloaded
    mimalloc.stats()                    in such a program: its statistics, as a dictionary
    mimalloc.is_active()                does the allocator serve this process?
"""

from .inprocess import NotActive, is_active, stats, version

__all__ = ["NotActive", "is_active", "stats", "version"]
