"""Published pages: made when asked, read while they are written, removed when their process has ended."""

import os
import resource
import signal
import struct
import subprocess

import pytest
from conftest import wait_for

from mimalloc import page


def files(pages):
    return sorted(pages.glob("mimalloc-*.stats"))


def one(pages):
    found = files(pages)
    assert len(found) == 1
    return page.read(found[0])


def test_no_page_when_not_asked(served, pages, victim_program):
    before = {name for place in page.directories() if place.is_dir() for name in os.listdir(place)}
    run = subprocess.run([victim_program], env=served, input="a\nq\n", text=True, capture_output=True, timeout=60, check=False)
    assert run.returncode == 7
    assert files(pages) == []
    pid = run.stdout.split()[0]
    after = {name for place in page.directories() if place.is_dir() for name in os.listdir(place)}
    assert not any(name.startswith(f"mimalloc-{pid}-") for name in after - before)


def test_values_follow_the_program(start_victim, pages):
    victim = start_victim()
    first = one(pages)
    assert first.pid == victim.pid and first.program == "victim" and not first.is_ended
    assert first.started == page.started_of(victim.pid) and page.is_live(first)
    assert first.version >= (2, 4, 0)
    assert victim.tell("a") == "done"
    second = one(pages)
    assert second.n_updates > first.n_updates
    assert second.stats["malloc_normal_count"] >= first.stats["malloc_normal_count"] + 20000
    assert second.stats["malloc_requested"]["current"] >= 20000 * 600
    i = next(i for i, size in enumerate(second.bin_sizes) if size is None or size >= 600)
    assert second.bins["malloc_bins"][i]["current"] >= 20000
    assert second.bin_sizes[-1] is None and second.bin_sizes == sorted(second.bin_sizes, key=lambda n: n or 1 << 62)
    for value in second.stats.values():
        if isinstance(value, dict):
            assert 0 <= value["current"] <= value["peak"] <= value["total"]


def test_mode_and_name(start_victim, pages):
    victim = start_victim()
    info = files(pages)[0].stat()
    assert info.st_mode & 0o7777 == 0o600 and info.st_uid == os.getuid()
    assert files(pages)[0].name == f"mimalloc-{victim.pid}-{page.own_space()}.stats"
    assert info.st_size % resource.getpagesize() == 0 and info.st_size <= 4 * resource.getpagesize()


def test_mode_whatever_the_umask(served, pages, victim_program):
    run = subprocess.run(["sh", "-c", f"umask 0777; exec {victim_program}"], env={**served, "MIMALLOC_PUBLISH": "1"}, input="q\n",
                         text=True, timeout=60, check=False)
    assert run.returncode == 7
    assert files(pages)[0].stat().st_mode & 0o7777 == 0o600


def test_ended_page_has_the_last_values_and_is_removed(start_victim, pages):
    victim = start_victim()
    victim.tell("a")
    victim.process.stdin.write("q\n")
    victim.process.stdin.flush()
    assert victim.process.wait(timeout=60) == 7
    last = one(pages)
    assert last.is_ended and last.stats["malloc_normal_count"] >= 20000
    assert page.live_pages([pages]) == []
    assert files(pages) == []


def test_stale_page_of_a_killed_process_is_removed(start_victim, pages):
    victim, other = start_victim(), start_victim()
    victim.process.send_signal(signal.SIGKILL)
    victim.process.wait(timeout=60)
    assert len(files(pages)) == 2
    assert [each.pid for each in page.live_pages([pages])] == [other.pid]
    assert [path.name.split("-")[1] for path in files(pages)] == [str(other.pid)]


def test_stale_page_is_removed_by_the_next_process(start_victim, pages):
    victim = start_victim()
    victim.process.kill()
    victim.process.wait(timeout=60)
    other = start_victim()
    assert [path.name.split("-")[1] for path in files(pages)] == [str(other.pid)]


def test_page_of_an_earlier_process_with_our_pid_is_stale(start_victim, pages):
    victim = start_victim()
    data = bytearray(files(pages)[0].read_bytes())
    struct.pack_into("=Q", data, 48, page.started_of(victim.pid) - 5)    # another start
    files(pages)[0].unlink()
    (pages / f"mimalloc-{victim.pid}-{page.own_space()}.stats").write_bytes(data)
    assert page.live_pages([pages]) == [] and files(pages) == []


def test_pages_of_other_pid_namespaces_are_left_alone(start_victim, pages):
    start_victim()
    data = bytearray(files(pages)[0].read_bytes())
    struct.pack_into("=QQ", data, 32, 1, 12345)
    foreign = pages / "mimalloc-1-12345.stats"
    foreign.write_bytes(data)
    assert {each.pid_space for each in page.live_pages([pages])} == {12345, page.own_space()}
    struct.pack_into("=q", data, 56, 0)     # written when the machine was started
    foreign.write_bytes(data)
    assert {each.pid_space for each in page.live_pages([pages])} in ({page.own_space()}, {12345, page.own_space()})
    assert foreign.exists()


def test_reader_while_the_writer_dies(start_victim, pages):
    """In the middle of an update: the reader says so, and the file goes with the process."""
    victim = start_victim()
    path = files(pages)[0]
    with path.open("r+b") as file:
        file.seek(page.SEQUENCE_AT)
        n = struct.unpack("=I", file.read(4))[0]
        victim.process.send_signal(signal.SIGSTOP)
        file.seek(page.SEQUENCE_AT)
        file.write(struct.pack("=I", n | 1))
    with pytest.raises(page.PageError, match="in the middle of an update"):
        page.read(path)
    assert page.live_pages([pages]) == [] and path.exists()     # it lives: nothing is removed
    victim.process.kill()
    victim.process.wait(timeout=60)
    assert page.sweep([pages]) == [path] and not path.exists()


def test_readers_never_see_half_an_update(start_victim, pages):
    victim = start_victim(MIMALLOC_PURGE_DELAY="1")
    path = files(pages)[0]
    victim.process.stdin.write("a\n" * 5)
    victim.process.stdin.flush()
    seen = set()

    def look():
        each = page.read(path)
        total = sum(bin_["current"] for bin_ in each.bins["malloc_bins"][:-1])
        assert total == each.stats["malloc_normal_count"]
        seen.add(each.n_updates)
        return len(seen) >= 5

    wait_for(look)


@pytest.mark.parametrize("change, text", [
    (lambda data: data[:100], "cut off|no published page"),
    (lambda data: data[:4000], "damaged or cut off"),
    (lambda data: b"\0" * len(data), "no published page"),
    (lambda data: data[:8] + struct.pack("=I", 9) + data[12:], "format 9"),
    (lambda data: data[:76] + struct.pack("=I", 1 << 30) + data[80:], "damaged"),
])
def test_damaged_pages_are_named(start_victim, pages, tmp_path, change, text):
    start_victim()
    bad = tmp_path / "bad.stats"
    bad.write_bytes(change(files(pages)[0].read_bytes()))
    with pytest.raises(page.PageError, match=text):
        page.read(bad)


def test_unknown_entries_are_ignored(start_victim, pages, tmp_path):
    start_victim()
    data = bytearray(files(pages)[0].read_bytes())
    table, = struct.unpack_from("=I", data, 72)
    struct.pack_into("=40sIHH", data, table, b"of_the_future", 1 << 20, 77, 3)
    (tmp_path / "future.stats").write_bytes(data)
    found = page.read(tmp_path / "future.stats")
    assert "of_the_future" not in found.stats and "committed" in found.stats


def test_links_are_not_followed(start_victim, pages, tmp_path):
    start_victim()
    (tmp_path / "link").symlink_to(files(pages)[0])
    with pytest.raises(page.PageError, match="link"):
        page.read(tmp_path / "link")


# ---- what can go wrong where the page is made ------------------------------------------------------------------------

def run_true(served, **settings):
    env = {**served, "MIMALLOC_PUBLISH": "1", "MIMALLOC_SHOW_ERRORS": "1", **settings}
    return subprocess.run(["/bin/true"], env=env, text=True, capture_output=True, timeout=60, check=True).stderr


def test_missing_directory_is_named(served, tmp_path):
    said = run_true(served, MIMALLOC_PUBLISH_DIR=str(tmp_path / "gone"))
    assert f"not published in {tmp_path}/gone/mimalloc-" in said and "the directory does not exist" in said


def test_file_in_place_of_the_directory(served, tmp_path):
    (tmp_path / "file").touch()
    assert "is no directory" in run_true(served, MIMALLOC_PUBLISH_DIR=str(tmp_path / "file"))


def test_long_name(served):
    assert "too long" in run_true(served, MIMALLOC_PUBLISH_DIR="/" + "x" * 300)


def test_bad_value(served, pages):
    assert "mimalloc_publish has an invalid value. '7' is out of range" in run_true(served, MIMALLOC_PUBLISH="7")
    assert files(pages) == []


def test_limit_on_files(served, pages):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    run = subprocess.run(["/bin/true"], env={**served, "MIMALLOC_PUBLISH": "1", "MIMALLOC_SHOW_ERRORS": "1"}, preexec_fn=limit,
                         text=True, capture_output=True, timeout=60, check=False)
    assert run.returncode == 0 and "RLIMIT_FSIZE" in run.stderr and files(pages) == []


def test_limit_on_open_files(served, pages, victim_program):
    code = "ulimit -n 3; exec " + str(victim_program)
    run = subprocess.run(["sh", "-c", code], env={**served, "MIMALLOC_PUBLISH": "1"}, text=True, input="q\n", capture_output=True,
                         timeout=60, check=False)
    assert run.returncode in (7, 127)   # 127: the loader had no file for the library either


def test_full_directory(served, tmp_path):
    """In a mount namespace, where that is allowed."""
    target = tmp_path / "full"
    target.mkdir()
    script = (f"mount -t tmpfs -o size=4k tmpfs {target} && head -c 4096 /dev/zero > {target}/x && "
              f"LD_PRELOAD={served['LD_PRELOAD']} MIMALLOC_PUBLISH=1 MIMALLOC_SHOW_ERRORS=1 MIMALLOC_PUBLISH_DIR={target} /bin/true")
    plain = {name: value for name, value in served.items() if name != "LD_PRELOAD"}
    run = subprocess.run(["unshare", "-Urm", "sh", "-c", script], env=plain, text=True, capture_output=True, timeout=60, check=False)
    if run.returncode != 0 and "mimalloc" not in run.stderr:
        pytest.skip(f"no mount namespace: {run.stderr.strip()}")
    assert run.returncode == 0 and "no room is left there" in run.stderr


def test_what_others_put_there_is_not_written_to(served, pages, victim_program, tmp_path):
    """A link with the name that the file is going to have."""
    target = tmp_path / "target"
    target.write_text("mine")
    code = f'ln -sf {target} "{pages}/mimalloc-$$-{page.own_space()}.stats"; MIMALLOC_PUBLISH=1 exec {victim_program}'
    run = subprocess.run(["sh", "-c", code], env=served, text=True, input="q\n", timeout=60, check=False)
    assert run.returncode == 7 and target.read_text() == "mine"


def test_exec_makes_a_new_page(served, pages, victim_program):
    process = subprocess.Popen(["/usr/bin/env", str(victim_program)], env={**served, "MIMALLOC_PUBLISH": "1"}, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    try:
        assert one(pages).program == "victim"
    finally:
        process.communicate("q\n", timeout=60)


def test_forks_have_their_own_when_asked(served, pages):
    code = ("import os, sys, time\npid = os.fork()\nx = []\n"
            "for i in range(60): x.append([bytes(5000) for k in range(500)]); time.sleep(0.05)\n"
            "if pid: os.waitpid(pid, 0)")
    import sys
    process = subprocess.Popen([sys.executable, "-c", code], env={**served, "MIMALLOC_PUBLISH": "2", "PYTHONMALLOC": "malloc"})
    try:
        wait_for(lambda: len(files(pages)) == 2)
        assert len({each.pid for each in page.live_pages([pages])}) == 2
    finally:
        assert process.wait(timeout=60) == 0
    assert files(pages) == []       # both have removed theirs
