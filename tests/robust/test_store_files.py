"""A directory that another broker has, or whose files are missing, strange or new: served or refused, never silent."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.robust.children import PATIENCE
from tests.robust.served import Served, info, options_for, session, values

pytest.importorskip("pyarrow")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    made = Served(tmp_path / "store")
    yield made
    made.child.end()


def refused(directory: Path) -> tuple[int, str]:
    """The exit code and the error text of a broker that does not start."""
    words = ["broker", *options_for(directory)]
    ended = subprocess.run([sys.executable, "-m", "elea", *words], capture_output=True, text=True, timeout=PATIENCE)
    return ended.returncode, ended.stderr


def test_second_broker_on_a_directory_is_refused_and_told_who_has_it(served: Served) -> None:
    with session(served) as writer:
        writer.put("f/1", "a", ack=True)

        code, text = refused(served.directory)

        assert code == 4
        assert f"in use by process {served.child.process.pid}" in text
        writer.put("f/1", "b", ack=True)
        assert values(writer) == [b"a", b"b"]


def segments(served: Served) -> list[Path]:
    return sorted(served.log.glob("[0-9]*.arrows"))


def delete_index(served: Served) -> None:
    (served.log / "index").unlink()


def empty_index(served: Served) -> None:
    (served.log / "index").write_bytes(b"")


def index_of_a_later_version(served: Served) -> None:
    data = (served.log / "index").read_bytes()
    (served.log / "index").write_bytes(data.replace(b"EleaIdx1", b"EleaIdx2"))


def delete_segment(served: Served) -> None:
    segments(served)[1].unlink()


def rename_segment(served: Served) -> None:
    segments(served)[1].rename(served.log / f"{77:020}.arrows")


def empty_segment(served: Served) -> None:
    segments(served)[1].write_bytes(b"")


def duplicate_segment(served: Served) -> None:
    shutil.copy(segments(served)[1], served.log / f"{77:020}.arrows")


def delete_catalogue(served: Served) -> None:
    (served.log / "catalogue.sqlite").unlink()


@pytest.mark.parametrize(
    ("change", "lost", "named"),
    [
        (delete_index, 0, None),
        (empty_index, 0, "index"),
        (index_of_a_later_version, 0, "index"),
        (delete_segment, 1, "missing"),
        (rename_segment, 1, "missing"),
        (empty_segment, 1, "octets"),
        (duplicate_segment, 0, "the file is the segment of position 1"),
        (delete_catalogue, 0, "cursors are lost"),
    ],
)
def test_broker_serves_what_is_left_and_names_what_is_not(
    tmp_path: Path, change: Callable[[Served], None], lost: int, named: str | None
) -> None:
    served = Served(tmp_path / "store", segment_bytes=1)
    with session(served) as writer:
        for number in range(4):
            writer.put(f"f/{number}", str(number), ack=True)
    served.end(signal.SIGTERM)
    before = {path.name for path in served.log.iterdir()}
    change(served)
    changed = {path.name for path in served.log.iterdir()}

    served.start()
    with session(served) as reader:
        facts = info(reader)
        found = values(reader)
        replies = sorted(reply.ok.payload.to_bytes() for reply in reader.get("f/*") if reply.ok)
        position = reader.put("f/9", "new", ack=True)
    served.child.end()

    wanted = [b"%d" % number for number in range(4) if not lost or number != 1]
    assert found == wanted
    assert replies == wanted or lost  # a get that meets lost samples says so instead
    assert bool(facts["damage"]) == (named is not None)
    assert named is None or any(named in text for text in facts["damage"]), facts["damage"]
    assert position is not None
    assert position.position == 4  # those of lost samples are not given out again
    assert changed - {path.name for path in served.log.iterdir()} == set(), f"of {before} files were removed"


def test_broker_refuses_a_log_of_a_later_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from elea.store import Record, open_log

    with monkeypatch.context() as patch:
        patch.setattr("elea.store.segment.FORMAT", 2)
        with open_log(tmp_path / "store" / "f") as log:
            log.append([Record("f/1", b"a", 1 << 62, b"\x01", 0)])
    before = {path.name: path.read_bytes() for path in (tmp_path / "store" / "f").glob("*.arrows")}

    code, text = refused(tmp_path / "store")

    assert code == 1
    assert "has format 2" in text
    assert {path.name: path.read_bytes() for path in (tmp_path / "store" / "f").glob("*.arrows")} == before
