"""Logs whose files leave out what all keys begin with."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from elea.model.errors import StoreError
from elea.store import Log, Range, Record, Retention, open_log

PREFIX = "häuser/1"


def record(key: str, number: int) -> Record:
    return Record(key, str(number).encode(), number << 32, b"\x01", number * 10**9)


def opened(path: Path, prefix: str = PREFIX, *, read_only: bool = False) -> Log:
    return open_log(path, strip_prefix=prefix, read_only=read_only, segment_bytes=32_768)


def keys(log: Log) -> list[str]:
    return [stored.record.key for stored in log.read()]


WHOLE = [f"{PREFIX}/a", PREFIX, f"{PREFIX}/b/c"]
REST = ["a", "", "b/c"]


def test_files_have_the_rest_of_the_keys_and_readers_the_whole(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        log.append([record(key, number) for number, key in enumerate(WHOLE)])

        assert keys(log) == WHOLE
        assert [log.latest(key).position for key in WHOLE] == [0, 1, 2]  # type: ignore[union-attr]
        assert [one.position for one in log.read(Range(keys=f"{PREFIX}/**", newest_first=True))] == [2, 1, 0]
        assert pa.ipc.open_stream(b"".join(log.read_ipc())).read_all().column("key").to_pylist() == WHOLE
        assert [one.record.key for one in log.as_of(f"{PREFIX}/*")] == [WHOLE[0]]
    with opened(tmp_path, "", read_only=True) as bare:
        assert keys(bare) == REST
    with opened(tmp_path, "elsewhere", read_only=True) as moved:
        assert keys(moved) == ["elsewhere/a", "elsewhere", "elsewhere/b/c"]


@pytest.mark.parametrize("index", [True, False])
def test_a_log_that_is_opened_again_knows_its_keys(tmp_path: Path, index: bool) -> None:
    with opened(tmp_path) as log:
        log.append([record(key, number) for number, key in enumerate(WHOLE)])
    if not index:
        (tmp_path / "index").unlink()

    with opened(tmp_path) as log:
        log.append([record(PREFIX, 7)])

        assert [(one.record.key, one.position) for one in log.latest_matching("**")] == [
            (WHOLE[0], 0), (WHOLE[2], 2), (PREFIX, 3),
        ]  # fmt: skip
        assert not log.damage


def test_compaction_and_retention_keep_keys_as_they_are(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        log.append([record(WHOLE[1], 0)])
        for number in range(1, 120):
            log.append([record(WHOLE[2], number)])
        before = keys(log)

        assert log.compact() > 0
        assert keys(log) == before
        assert log.retain(Retention(samples=20), 0).samples > 0
        assert [(one.record.key, one.position) for one in log.latest_matching("**")] == [(WHOLE[1], 0), (WHOLE[2], 119)]
    with opened(tmp_path, "", read_only=True) as bare:
        assert [one.record.key for one in bare.latest_matching("b/*")] == ["b/c"]


@pytest.mark.parametrize("key", ["other/a", "häuser/12", "häuser"])
def test_a_key_with_another_beginning_is_refused_and_nothing_stored(tmp_path: Path, key: str) -> None:
    with opened(tmp_path) as log:
        with pytest.raises(StoreError, match="does not begin with"):
            log.append([record(WHOLE[0], 1), record(key, 2)])

        assert (log.end, keys(log)) == (0, [])
