"""The allocator of this very process, if that is mimalloc: asked by ctypes, without a copy of the library."""

import ctypes
import json


class NotActive(RuntimeError):
    """This process does not run with mimalloc."""


def _symbols():
    """The symbols of the whole process, in which a preloaded or linked library is."""
    process = ctypes.CDLL(None)
    try:
        process.mi_version.restype = ctypes.c_int
        process.mi_usable_size.restype = ctypes.c_size_t
        return process
    except AttributeError:
        return None


def is_active():
    """Does malloc of this process come from mimalloc?  It may be loaded without serving."""
    process = _symbols()
    if process is None:
        return False
    process.malloc.restype = ctypes.c_void_p
    process.malloc.argtypes = [ctypes.c_size_t]
    process.free.argtypes = [ctypes.c_void_p]
    process.mi_is_in_heap_region.restype = ctypes.c_bool
    process.mi_is_in_heap_region.argtypes = [ctypes.c_void_p]
    block = process.malloc(1000)
    try:
        return bool(process.mi_is_in_heap_region(block))
    finally:
        process.free(block)


def _required():
    process = _symbols()
    if process is None:
        raise NotActive("This process does not run with mimalloc. Start it by: python -m mimalloc run PROGRAM")
    return process


def version():
    """(major, minor, patch) of the library in this process."""
    n = _required().mi_version()
    return n // 10000, n // 100 % 100, n % 100


def stats():
    """The statistics of this process: what mi_stats_get_json says, as a dictionary.  mimalloc-stats.h explains the fields."""
    process = _required()
    get, free = process.mi_stats_get_json, process.mi_free
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.c_size_t, ctypes.c_void_p]
    free.restype, free.argtypes = None, [ctypes.c_void_p]
    text = get(0, None)
    if not text:
        raise MemoryError("There is no memory for the statistics.")
    try:
        return json.loads(ctypes.string_at(text))
    finally:
        free(text)
