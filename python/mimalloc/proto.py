"""Protocol buffers, as far as profiles use them: fields by number, without descriptions."""

import struct

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class ProtoError(ValueError):
    pass


def varint(data, at):
    """(number, position behind it)."""
    n = shift = 0
    while True:
        if at >= len(data):
            raise ProtoError("it is cut off")
        byte = data[at]
        at += 1
        n |= (byte & 0x7f) << shift
        if byte < 0x80:
            return n & 0xffffffffffffffff, at
        shift += 7
        if shift > 63:
            raise ProtoError("a number has more than 64 bits")


def signed(n):
    return n - (1 << 64) if n >= 1 << 63 else n


def fields(data):
    """(number, type, value) of each field: an int, or bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            value, at = varint(data, at)
        elif kind in (FIXED64, FIXED32):
            size = 8 if kind == FIXED64 else 4
            if at + size > len(data):
                raise ProtoError("it is cut off")
            value, at = struct.unpack_from("<Q" if size == 8 else "<I", data, at)[0], at + size
        elif kind == BYTES:
            size, at = varint(data, at)
            if at + size > len(data):
                raise ProtoError("it is cut off")
            value, at = data[at:at + size], at + size
        else:
            raise ProtoError(f"a field has the unknown type {kind}")
        if number == 0:
            raise ProtoError("a field has the number 0")
        yield number, kind, value


def numbers(kind, value):
    """The values of a repeated number, packed or not."""
    if kind != BYTES:
        return [value]
    result, at = [], 0
    while at < len(value):
        n, at = varint(value, at)
        result.append(n)
    return result


# ---- writing --------------------------------------------------------------------------------------------------------

def write_varint(n):
    n &= 0xffffffffffffffff
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7f | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def write(number, value):
    """A field with an int, or with bytes."""
    if isinstance(value, int):
        return write_varint(number << 3 | VARINT) + write_varint(value)
    return write_varint(number << 3 | BYTES) + write_varint(len(value)) + value


def write_packed(number, values):
    return write(number, b"".join(map(write_varint, values))) if values else b""
