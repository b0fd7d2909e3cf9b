"""A capture of many samples, replayed and captured again: the same samples, in order, with the same timestamps.

A publisher of eclipse-zenoh (or of Elea, `--publisher elea`) puts numbered samples on several keys through a router,
with timestamps, attachments and deletions among them. The recorder writes them; the capture is replayed at full speed
and recorded again; both captures and what was put are compared, and the files are opened with the `mcap` library:

    python -m tests.recording --samples 1000000
    python -m tests.recording --samples 100000 --format parquet --publisher elea
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import zenoh
from mcap.reader import make_reader

import elea
from elea.recorder import Figures, Recorder, Replayer, open_capture

KEYS = 50
PATIENCE = 600.0


def main() -> int:
    """Runs it; 1 if something differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--format", choices=("mcap", "parquet", "arrows"), default="mcap")
    parser.add_argument("--publisher", choices=("zenoh", "elea"), default="zenoh")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        return compare(args.samples, args.format, zenoh if args.publisher == "zenoh" else elea, Path(directory))


def compare(count: int, suffix: str, lib: Any, directory: Path) -> int:
    """One capture, its replay, and the capture of that; 1 if they differ."""
    first, second = directory / f"first.{suffix}", directory / f"second.{suffix}"
    with router() as locator_of, opened(elea, locator_of) as here:
        with opened(lib, locator_of) as there:
            put_seconds, figures = captured(here, first, lambda: publish(lib, there, count), count)
        print(
            f"recorded  {figures.samples:,} in {put_seconds:.1f} s, {figures.size:,} bytes, {figures.dropped} dropped"
        )
        with opened(elea, locator_of) as other:
            replay = Replayer(other, [first], pace=None)
            seconds, again = captured(here, second, lambda: replay.run(), count)
        print(f"replayed  {replay.sent:,} in {seconds:.1f} s, {again.dropped} dropped")
    problems = list(differences(first, second, count))
    for problem in problems:
        print(problem)
    print("the same samples in order" if not problems else "NOT the same")
    return 1 if problems else 0


def opened(lib: Any, locator: str) -> Any:
    """A client of the router."""
    text = f"{{mode: 'client', connect: {{endpoints: ['{locator}']}}, scouting: {{multicast: {{enabled: false}}}}}}"
    return lib.open(lib.Config.from_json5(text))


class router:  # noqa: N801 - used as a function
    """A router of Elea on a free port; gives its locator."""

    def __enter__(self) -> str:
        text = "{mode: 'router', listen: {endpoints: ['tcp/127.0.0.1:0']}, scouting: {multicast: {enabled: false}}}"
        self._session = elea.open(elea.Config.from_json5(text))
        return str(self._session.info.locators()[0])

    def __exit__(self, *_: object) -> None:
        self._session.close()


def captured(session: Any, path: Path, act: Any, count: int) -> tuple[float, Figures]:
    """Records what comes while something is done, until all of it is there."""
    recorder = Recorder(session, "home/**", path, overflow="block")
    check = session.declare_publisher("home/0/temp")  # its own subscriber is known at once; others hear of it meanwhile
    check.undeclare()
    began = time.monotonic()
    act()
    while recorder.figures().samples + recorder.figures().dropped < count and recorder.problem is None:
        if time.monotonic() > began + PATIENCE:
            break
        time.sleep(0.05)
    return time.monotonic() - began, recorder.close()


def publish(lib: Any, session: Any, count: int) -> None:
    """Numbered samples, some with more to say than others."""
    block = lib.CongestionControl.BLOCK
    publishers = [
        session.declare_publisher(f"home/{n}/temp", encoding="application/json", congestion_control=block)
        for n in range(KEYS)
    ]
    until = time.monotonic() + PATIENCE
    while not all(each.matching_status.matching for each in publishers) and time.monotonic() < until:
        time.sleep(0.01)
    for number in range(count):
        publisher = publishers[number % KEYS]
        stamp = session.new_timestamp()
        if number % 1000 == 999:
            publisher.delete(timestamp=stamp, attachment=b"%d" % number)
        elif number % 10:
            publisher.put(b'{"n": %d}' % number, timestamp=stamp)
        else:
            publisher.put(b'{"n": %d}' % number, timestamp=stamp, attachment=b"%d" % number)


def differences(first: Path, second: Path, count: int) -> Iterator[str]:
    """What is not as it should be."""
    one, other = (pa.Table.from_batches(list(open_capture(path))).combine_chunks() for path in (first, second))
    for name, table in (("the capture", one), ("the replay", other)):
        if table.num_rows != count:
            yield f"{name} has {table.num_rows} samples"
    for column in one.column_names:
        if column not in ("arrival", "qos") and not one.column(column).equals(other.column(column)):
            yield f"column {column} differs"
    stamps = one.column("ntp64")
    if stamps.null_count or not pc.all(pc.less(stamps[:-1], stamps[1:])).as_py():
        yield "timestamps do not rise"
    payloads = [b"" if n % 1000 == 999 else b'{"n": %d}' % n for n in range(count)]
    if not one.column("payload").combine_chunks().equals(pa.array(payloads, pa.binary())):
        yield "payloads are not those that were put"
    if first.suffix == ".mcap":
        yield from read_by_library(first, count)


def read_by_library(path: Path, count: int) -> Iterator[str]:
    """The same file, as the `mcap` library reads it."""
    with path.open("rb") as file:
        reader = make_reader(file, validate_crcs=True)
        summary = reader.get_summary()
        found = 0
        for _, _, message in reader.iter_messages(topics=["home/7/temp"]):
            number = 7 + KEYS * found
            if message.data not in (b'{"n": %d}' % number, b""):
                yield f"message {number} is {message.data!r} for the mcap library"
                return
            found += 1
    if summary is None or summary.statistics is None:
        yield "the mcap library finds no summary"
    elif summary.statistics.message_count - summary.statistics.chunk_count != count:
        yield f"the mcap library finds {summary.statistics.message_count} messages"
    if found != len(range(7, count, KEYS)):
        yield f"the mcap library finds {found} messages of home/7/temp"


if __name__ == "__main__":
    raise SystemExit(main())
