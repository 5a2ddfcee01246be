"""Reads profiles in the format of pprof (profile.proto)."""

import dataclasses
import zlib

from . import files, proto
from .errors import ToolError

SIZE_MAX = 1 << 30      # of a profile when it is unpacked
PREFERRED = ("inuse_space", "alloc_space", "inuse_objects", "alloc_objects")


@dataclasses.dataclass
class Mapping:
    id: int = 0
    start: int = 0
    limit: int = 0
    offset: int = 0
    filename: str = ""
    build_id: str = ""


@dataclasses.dataclass
class Line:
    function: str
    file: str = ""
    line: int = 0


@dataclasses.dataclass
class Location:
    id: int = 0
    mapping: Mapping = None
    address: int = 0
    lines: list = dataclasses.field(default_factory=list)   # Line, the innermost inlined function first


@dataclasses.dataclass
class Sample:
    locations: list     # the innermost frame first
    values: list
    labels: dict


@dataclasses.dataclass
class Profile:
    path: str
    types: list         # (name, unit)
    samples: list
    mappings: list
    locations: list
    default_type: str = ""
    period: int = 0
    duration_ns: int = 0
    comments: list = dataclasses.field(default_factory=list)

    def index(self, name=None):
        """Which of the values; by default what is in use, in bytes."""
        names = [each for each, _ in self.types]
        if name is None:
            known = [each for each in (self.default_type, *PREFERRED) if each in names]
            return names.index(known[0]) if known else len(names) - 1
        if name not in names:
            raise ToolError(f"{self.path} has no values {name}. It has: {', '.join(names)}.")
        return names.index(name)

    def has(self, name):
        return name in [each for each, _ in self.types]


def _unpack(data, path):
    if data[:2] != b"\x1f\x8b":
        return data
    try:
        stream = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
        plain = stream.decompress(data, SIZE_MAX)
    except zlib.error as error:
        raise ToolError(f"{path} is damaged: {error}.") from error
    if stream.unconsumed_tail:
        raise ToolError(f"{path} is larger than {SIZE_MAX >> 20} MiB when it is unpacked.")
    if not stream.eof:
        raise ToolError(f"{path} is cut off.")
    return plain


def read(path):
    data = files.read(path)
    try:
        return parse(_unpack(data, path), str(path))
    except (proto.ProtoError, IndexError, KeyError, TypeError, AttributeError) as error:
        raise ToolError(f"{path} is no profile of pprof: {error}.") from error


# ---- messages -------------------------------------------------------------------------------------------------------

def _message(data, repeated=()):
    """{number: value}; of repeated fields a list of (type, value)."""
    result = {}
    for number, kind, value in proto.fields(data):
        if number in repeated:
            result.setdefault(number, []).append((kind, value))
        else:
            result[number] = value
    return result


def _mapping(data, strings):
    m = _message(data)
    return Mapping(m.get(1, 0), m.get(2, 0), m.get(3, 0), m.get(4, 0), strings[m.get(5, 0)], strings[m.get(6, 0)])


def _location(data, mappings, functions):
    m = _message(data, {4})
    lines = []
    for _, value in m.get(4, []):
        line = _message(value)
        name, file = functions.get(line.get(1, 0), ("", ""))
        lines.append(Line(name, file, proto.signed(line.get(2, 0))))
    return Location(m.get(1, 0), mappings.get(m.get(2, 0)), m.get(3, 0), lines)


def _sample(data, locations, strings):
    m = _message(data, {1, 2, 3})
    frames = [locations[n] for kind, value in m.get(1, []) for n in proto.numbers(kind, value)]
    values = [proto.signed(n) for kind, value in m.get(2, []) for n in proto.numbers(kind, value)]
    labels = {}
    for _, value in m.get(3, []):
        label = _message(value)
        labels[strings[label.get(1, 0)]] = strings[label[2]] if label.get(2) else proto.signed(label.get(3, 0))
    return Sample(frames, values, labels)


def parse(data, path="the profile"):
    top = _message(data, {1, 2, 3, 4, 5, 6, 13})
    strings = [value.decode("utf-8", "surrogateescape") for _, value in top.get(6, [])]
    if not strings or not top.get(1):
        raise proto.ProtoError("it has no sample types")
    types = [(strings[m.get(1, 0)], strings[m.get(2, 0)]) for m in (_message(value) for _, value in top[1])]
    functions = {m.get(1, 0): (strings[m.get(2, 0)] or strings[m.get(3, 0)], strings[m.get(4, 0)])
                 for m in (_message(value) for _, value in top.get(5, []))}
    mappings = {m.id: m for m in (_mapping(value, strings) for _, value in top.get(3, []))}
    locations = {loc.id: loc for loc in (_location(value, mappings, functions) for _, value in top.get(4, []))}
    samples = [_sample(value, locations, strings) for _, value in top.get(2, [])]
    if any(len(sample.values) != len(types) for sample in samples):
        raise proto.ProtoError(f"a sample has not {len(types)} values")
    comments = [strings[n] for kind, value in top.get(13, []) for n in proto.numbers(kind, value)]
    return Profile(path, types, samples, list(mappings.values()), list(locations.values()), strings[top.get(14, 0)],
                   proto.signed(top.get(12, 0)), proto.signed(top.get(10, 0)), comments)
