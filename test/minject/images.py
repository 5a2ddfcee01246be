"""Makes small executables of Windows, and reads them, without the code that is tested.

make() gives a file that the loader would take, with whatever the arguments ask for.  Image reads a file as the documentation of
the format has it, asserts what the loader demands, and says what is in it."""

import struct

HEADERS = 0x400
PAGE = 0x1000
X86, X64, ARM64 = 0x14C, 0x8664, 0xAA64
DIRECTORIES = {"export": 0, "import": 1, "certificates": 4, "debug": 6, "bound": 11, "addresses": 12, "delay": 13, "cli": 14}


def aligned(n, unit):
    return -(-n // unit) * unit


def import_table(address, imports, bits, bound=False):
    """The bytes of a table of imports at that address, and where its addresses begin and end."""
    word, flag = ("<Q", 1 << 63) if bits == 64 else ("<I", 1 << 31)
    size = struct.calcsize(word)
    names = bytearray()
    n_words = sum(len(functions) + 1 for functions in imports.values())
    lookup_at = address + 20 * (len(imports) + 1)
    addresses_at = aligned(lookup_at + n_words * size, 16)
    names_at = addresses_at + n_words * size
    descriptors, words = bytearray(), bytearray()

    def name(text, hint=b""):
        if len(names) % 2:
            names.append(0)
        at = names_at + len(names)
        names.extend(hint + text.encode() + b"\0")
        return at

    for library, functions in imports.items():
        here = len(words)
        for function in functions:
            words += struct.pack(word, flag | int(function[1:]) if function.startswith("#") else name(function, b"\0\0"))
        words += bytes(size)
        time, forwarder = (0xFFFFFFFF, 0xFFFFFFFF) if bound else (0, 0)
        descriptors += struct.pack("<5I", lookup_at + here, time, forwarder, name(library), addresses_at + here)
    table = descriptors + bytes(20) + words
    table += bytes(addresses_at - address - len(table))
    return bytes(table + words + names), addresses_at, names_at


def delay_table(address, imports, bits):
    word = "<Q" if bits == 64 else "<I"
    out, tail, tail_at = bytearray(), bytearray(), address + 32 * (len(imports) + 1)
    for library, functions in imports.items():
        names = []
        for function in functions:
            names.append(tail_at + len(tail))
            tail += b"\0\0" + function.encode() + b"\0"
        library_at = tail_at + len(tail)
        tail += library.encode() + b"\0"
        words = b"".join(struct.pack(word, n) for n in (*names, 0))
        lookup = tail_at + len(tail)
        tail += words * 2
        out += struct.pack("<8I", 1, library_at, 0, lookup + len(words), lookup, 0, 0, 0)
    return bytes(out) + bytes(32) + bytes(tail)


def make(bits=64, imports=None, delayed=None, machine=None, overlay=b"", symbols=b"", bound=False, signed=b"", cli=False, dll=False,
         subsystem=3, alignment=PAGE, file_alignment=0x200, room=4, n_directories=16, integrity=False, with_addresses=True,
         debug=False, stub=b""):
    """`imports`: functions by library; "#7": by number.  `room`: for how many more sections there are headers.  `debug`: an
    entry of the debug directory that points into the overlay."""
    imports = {"KERNEL32.dll": ["ExitProcess", "GetLastError"], "USER32.dll": ["#7", "MessageBoxA"]} if imports is None else imports
    optional_size = (112 if bits == 64 else 96) + 8 * n_directories
    pe_at = 0x80 + len(stub)
    table_at = pe_at + 24 + optional_size
    headers = aligned(table_at + 40 * (2 + room), 8) if room < 4 else HEADERS
    # Without room, sections begin right behind the table in memory and in the file, so the stub fills up to a sector.
    if room < 4:
        pe_at += aligned(headers, 0x200) - headers
        table_at = pe_at + 24 + optional_size
    headers = aligned(table_at + 40 * (2 + room), 0x200) if room < 4 else HEADERS
    headers = aligned(headers, file_alignment)
    directories = [(0, 0)] * 16
    text_at = aligned(headers, alignment)
    data_at = text_at + alignment
    data, first, last = import_table(data_at, imports, bits, bound)
    if imports:
        directories[DIRECTORIES["import"]] = (data_at, 20 * (len(imports) + 1))
        if with_addresses:
            directories[DIRECTORIES["addresses"]] = (first, last - first)
    if delayed:
        at = data_at + len(data)
        data += delay_table(at, delayed, bits)
        directories[DIRECTORIES["delay"]] = (at, 32 * (len(delayed) + 1))
    if cli:
        directories[DIRECTORIES["cli"]] = (data_at + len(data), 72)
        data += bytes(72)
    debug_at = len(data)
    if debug:
        directories[DIRECTORIES["debug"]] = (data_at + debug_at, 28)
        data += bytes(28)
    virtual_size = len(data)
    text = b"\xc3" + bytes(aligned(1, file_alignment) - 1)
    data += bytes(aligned(len(data), file_alignment) - len(data))
    if debug:
        place = headers + len(text) + len(data) + 5
        data = data[:debug_at + 12] + struct.pack("<4I", 2, 4, 0, place) + data[debug_at + 28:]
    bound_table = struct.pack("<IHH", 0x11111111, 8, 0) if bound else b""
    if bound:  # where old linkers put it
        directories[DIRECTORIES["bound"]] = (table_at + 80, 8)
    file_size = headers + len(text) + len(data)
    symbols_at = file_size if symbols else 0
    before = symbols + overlay
    before += bytes(-(file_size + len(before)) % 8) if signed else b""
    if signed:
        certificate = struct.pack("<IHH", 8 + len(signed), 0x200, 2) + signed
        certificate += bytes(-len(certificate) % 8)
        directories[DIRECTORIES["certificates"]] = (file_size + len(before), len(certificate))
        before += certificate
    machine = machine or (X64 if bits == 64 else X86)
    dos = b"MZ" + bytes(58) + struct.pack("<I", pe_at) + stub
    dos += bytes(pe_at - len(dos))
    coff = struct.pack("<HHIIIHH", machine, 2, 0, symbols_at, len(symbols) // 18, optional_size, 0x2022 if dll else 0x22)
    optional = struct.pack("<HBBIIIII", 0x20B if bits == 64 else 0x10B, 14, 0, len(text), len(data), 0, text_at, text_at)
    optional += struct.pack("<Q", 0x140000000) if bits == 64 else struct.pack("<II", data_at, 0x400000)
    optional += struct.pack("<IIHHHHHHIIIIHH", alignment, file_alignment, 6, 0, 0, 0, 6, 0, 0,
                            aligned(data_at + virtual_size, alignment), headers, 0, subsystem, 0x8180 if integrity else 0x8100)
    optional += struct.pack("<4Q" if bits == 64 else "<4I", 0x100000, 0x1000, 0x100000, 0x1000)
    optional += struct.pack("<II", 0, n_directories)
    optional += b"".join(struct.pack("<II", *d) for d in directories[:n_directories])
    sections = struct.pack("<8s6IHHI", b".text", 1, text_at, len(text), headers, 0, 0, 0, 0, 0x60000020)
    sections += struct.pack("<8s6IHHI", b".rdata", virtual_size, data_at, len(data), headers + len(text), 0, 0, 0, 0, 0x40000040)
    head = dos + b"PE\0\0" + coff + optional + sections + bound_table
    return head + bytes(headers - len(head)) + text + data + before


class Image:
    def __init__(self, data):
        self.data = data
        assert data[:2] == b"MZ"
        self.pe = struct.unpack_from("<I", data, 60)[0]
        assert data[self.pe:self.pe + 4] == b"PE\0\0"
        (self.machine, n_sections, _, self.symbols, self.n_symbols, optional_size, _) = struct.unpack_from(
            "<HHIIIHH", data, self.pe + 4)
        self.optional = self.pe + 24
        self.bits = {0x10B: 32, 0x20B: 64}[struct.unpack_from("<H", data, self.optional)[0]]
        self.section_alignment, self.file_alignment = struct.unpack_from("<II", data, self.optional + 32)
        self.image_size, self.headers_size, self.checksum = struct.unpack_from("<III", data, self.optional + 56)
        self.dll_flags = struct.unpack_from("<H", data, self.optional + 70)[0]
        at = self.optional + (112 if self.bits == 64 else 96)
        n = struct.unpack_from("<I", data, at - 4)[0]
        self.directories = [struct.unpack_from("<II", data, at + 8 * i) for i in range(n)] + [(0, 0)] * (16 - n)
        self.sections = []  # (name, address, size in memory, place in the file, size there, flags)
        self.table_end = self.optional + optional_size + 40 * n_sections
        for i in range(n_sections):
            name, size, address, raw_size, raw, _, _, _, _, flags = struct.unpack_from(
                "<8s6IHHI", data, self.optional + optional_size + 40 * i)
            self.sections.append((name, address, size or raw_size, raw, raw_size, flags))
        self.end = max([self.headers_size] + [raw + raw_size for _, _, _, raw, raw_size, _ in self.sections if raw])

    def check(self):
        """What the loader of Windows demands of headers and sections."""
        assert self.table_end <= self.headers_size, "the table of sections is not in the headers"
        assert self.headers_size <= min(s[3] for s in self.sections if s[3]), "headers overlap sections"
        expected = aligned(self.headers_size, self.section_alignment)
        for name, address, size, raw, raw_size, _ in self.sections:
            assert address == expected, f"{name} is not at the end of what is before it"
            assert raw % self.file_alignment == 0 and raw_size % self.file_alignment == 0, f"{name} is not aligned"
            assert raw + raw_size <= len(self.data), f"{name} is not in the file"
            expected = address + aligned(size, self.section_alignment)
        assert self.image_size == expected, "the size of the image is not that of its sections"
        return self

    def directory(self, name):
        return self.directories[DIRECTORIES[name]]

    def sum(self):
        """As CheckSumMappedFile has it."""
        at = self.optional + 64
        data = self.data[:at] + bytes(4) + self.data[at + 4:] + bytes(len(self.data) % 2)
        total = sum(struct.unpack(f"<{len(data) // 2}H", data))
        while total > 0xFFFF:
            total = (total & 0xFFFF) + (total >> 16)
        return total + len(self.data)

    def at(self, address):
        if address < self.headers_size:
            return address
        for _, start, size, raw, raw_size, _ in self.sections:
            if start <= address < start + max(size, raw_size):
                return raw + address - start
        raise AssertionError(f"address {address:#x} is in no section")

    def section_of(self, address):
        return next(s for s in self.sections if s[1] <= address < s[1] + aligned(s[2], PAGE))

    def string(self, address):
        at = self.at(address)
        return self.data[at:self.data.index(b"\0", at)].decode("latin-1")

    def imports(self):
        """[(library, [functions], where its addresses are)], in order."""
        found = []
        table = self.directory("import")[0]
        while table:
            lookup, time, forwarder, name, addresses = struct.unpack_from("<5I", self.data, self.at(table))
            if name == 0 or addresses == 0:
                break
            assert (time, forwarder) == (0, 0) or self.directory("bound")[0], "bound without a table of bound imports"
            found.append((self.string(name), self.functions(lookup or addresses), addresses))
            table += 20
        return found

    def functions(self, address):
        word, flag = ("<Q", 1 << 63) if self.bits == 64 else ("<I", 1 << 31)
        found = []
        while True:
            entry = struct.unpack_from(word, self.data, self.at(address))[0]
            if entry == 0:
                return found
            found.append(f"#{entry & 0xFFFF}" if entry & flag else self.string(entry + 2))
            address += struct.calcsize(word)

    def names(self):
        return [name for name, _, _ in self.imports()]
