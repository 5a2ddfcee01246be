"""Writes profiles for tests, field by field as profile.proto numbers them."""

import gzip

from mimalloc.proto import write, write_packed


class Writer:
    TYPES = (("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes"))

    def __init__(self, types=TYPES):
        self.strings, self.parts = [""], []
        self.functions, self.locations, self.mappings = {}, {}, 0
        for name, unit in types:
            self.parts.append(write(1, write(1, self.string(name)) + write(2, self.string(unit))))

    def string(self, text):
        if text not in self.strings:
            self.strings.append(text)
        return self.strings.index(text)

    def mapping(self, start, limit, offset, filename, build_id=""):
        self.mappings += 1
        self.parts.append(write(3, write(1, self.mappings) + write(2, start) + write(3, limit) + write(4, offset) +
                                write(5, self.string(filename)) + write(6, self.string(build_id))))
        return self.mappings

    def function(self, name):
        if name not in self.functions:
            n = self.functions[name] = len(self.functions) + 1
            self.parts.append(write(5, write(1, n) + write(2, self.string(name)) + write(4, self.string("file.c"))))
        return self.functions[name]

    def location(self, what, mapping=0):
        """`what`: an address, or names of functions, the innermost first."""
        key = (what, mapping)
        if key not in self.locations:
            n = self.locations[key] = len(self.locations) + 1
            body = write(1, n) + (write(2, mapping) if mapping else b"")
            if isinstance(what, int):
                body += write(3, what)
            else:
                body += b"".join(write(4, write(1, self.function(name)) + write(2, 10)) for name in what)
            self.parts.append(write(4, body))
        return self.locations[key]

    def sample(self, stack, values, packed=True):
        """`stack`: locations, the innermost first."""
        if packed:
            body = write_packed(1, stack) + write_packed(2, values)
        else:
            body = b"".join(write(1, n) for n in stack) + b"".join(write(2, n) for n in values)
        self.parts.append(write(2, body))

    def named(self, stack, values, **more):
        """`stack`: names, the outermost first."""
        self.sample([self.location((name,)) for name in reversed(stack)], values, **more)

    def data(self, zipped=False):
        data = b"".join(self.parts) + b"".join(write(6, text.encode()) for text in self.strings) + write(12, 512 * 1024)
        return gzip.compress(data) if zipped else data
