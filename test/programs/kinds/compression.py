"""Programs that compress."""

from registry import program

def write_sample(path, size):
    """Text of words that compresses like text; the same each time."""
    state, words = 1, [f"{'lorem ipsum dolor sit amet consectetur'.split()[i % 6]}{i * i % 1009}" for i in range(3000)]
    with open(path, "w", encoding="utf-8") as file:
        written = 0
        while written < size:
            line = []
            for _ in range(12):
                state = (state * 1103515245 + 12345) & 0x7FFFFFFF
                line.append(words[(state >> 8) % 3000 if state & 64 else (state >> 8) % 40])
            text = " ".join(line) + "\n"
            file.write(text)
            written += len(text)


@program("zstd", quick=True)
def zstd(session):
    """zstd with two threads, at a low and a high level"""
    sample = session.work / "sample"
    write_sample(sample, 6 << 20)
    for level in (["-3"], ["-13"], ["--long=27", "-9"]):
        script = f"zstd -q -T2 {' '.join(level)} -c {sample} > out && sha256sum out && zstd -d -q --long=27 -c out | sha256sum"
        session.both(["sh", "-c", script])
    session.served(["zstd", "-q", "-T2", "-12", sample, "-o", "out.zst"], least_pages=1)


@program("xz-utils:xz", quick=True)
def xz(session):
    """xz with two threads"""
    sample = session.work / "sample"
    write_sample(sample, 6 << 20)
    session.both(["sh", "-c", f"xz -T2 -2 --block-size=1MiB -c {sample} > out && sha256sum out && xz -T2 -dc out | sha256sum"])
    session.bound(["xz", "-T2", "-2", "--block-size=1MiB", "-k", "-f", sample])


@program("p7zip-full:7z")
def sevenzip(session):
    """7-Zip: two threads of LZMA2 and of BZip2, a zip archive, and the tests of all"""
    sample = session.work / "sample"
    write_sample(sample, 1 << 20)
    script = (f"cp {sample} file && 7z a -bso0 -bsp0 -mmt=2 -mx=5 a.7z file && 7z a -bso0 -bsp0 -mmt=2 -tbzip2 a.bz2 file && "
              "7z a -bso0 -bsp0 -mmt=2 -tzip a.zip file && for i in a.7z a.bz2 a.zip; do 7z x -so $i | sha256sum; done && bzip2 -c < file | wc -c; sha256sum a.bz2")
    session.both(["sh", "-c", script])
    session.served(["7z", "a", "-bso0", "-bsp0", "-mmt=2", "-mx=5", "a.7z", sample], least_pages=5)


@program("brotli")
def brotli(session):
    """brotli at several levels and windows, and back"""
    sample = session.work / "sample"
    write_sample(sample, 2 << 20)
    session.both(["sh", "-c", f"for q in 1 5 9; do brotli -q $q -w 22 -c {sample} > out && sha256sum out && brotli -dc out | sha256sum; done"])
    session.served(["brotli", "-q", "7", "-o", "out.br", sample], least_pages=2)
