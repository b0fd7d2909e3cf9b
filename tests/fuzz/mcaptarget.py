"""MCAP files, of our recorder and others: records in chunks, and without, where no checksum keeps mutations out."""

from __future__ import annotations

import io
import tempfile
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from mcap.records import Chunk
from mcap.stream_reader import StreamReader, get_chunk_data_stream
from mcap.writer import MCAP0_MAGIC

from elea.model.errors import CaptureDamaged
from elea.recorder import mcapreader
from elea.recorder.mcapreader import McapCapture
from tests.fuzz.laws import require
from tests.fuzz.target import Target
from tests.unit.recorder.samples import batch_of, row, written

__all__ = ["mcap_target"]

CHUNK = 1 << 20
"""What a chunk may be when it is decompressed, here: a few bytes may become gigabytes, which is not looked for."""


def mcap_target() -> Target:
    """Whatever is read is made of samples; everything else is refused, or the end of the file is missing."""

    def decode(data: bytes) -> list[Any]:
        small = patch.object(mcapreader, "MCAP_CHUNK_BYTES", CHUNK)
        with small, tempfile.NamedTemporaryFile(suffix=".mcap") as file:
            file.write(data)
            file.flush()
            return list(McapCapture(Path(file.name)))

    def law(data: bytes, batches: list[Any]) -> None:
        for batch in batches:
            batch.validate(full=True)
            require(batch.num_rows > 0, "a batch has samples", batch)
            require(all(batch.column("key").to_pylist()), "a sample has a key", batch)

    def tokens() -> list[bytes]:
        return [MCAP0_MAGIC, b"zenoh.key", b"elea.capture", b"@details", b"\x05", b"\x06", b"zstd", b"\xff" * 8]

    return Target("mcap", decode, law, (CaptureDamaged,), _seeds, tokens, 16_384, repeats=False)


@cache
def _seeds() -> list[bytes]:
    found = []
    rows = [
        [row(n) for n in range(3)],
        [row(n, key=f"k/{n}", schema=b"s", attachment=b"more", qos=n) for n in range(4)],
        [row(n, kind=n % 2, payload=bytes(n), ntp64=None, stamp_id=None) for n in range(5)],
        [row(n, source_id=b"\1", source_eid=n, source_sn=n, encoding=n) for n in range(3)],
    ]
    with tempfile.TemporaryDirectory() as directory:
        for number, each in enumerate(rows):
            for compression in ("none", "zstd"):
                name = Path(directory) / f"{number}-{compression}.mcap"
                (path,) = written(name, [batch_of(each)], compression=compression)
                data = path.read_bytes()
                found += [data, MCAP0_MAGIC + _body(data)]
    return found


def _body(data: bytes) -> bytes:
    """The records in the chunks of a file, as they are without."""
    chunks = [one for one in StreamReader(io.BytesIO(data), emit_chunks=True).records if isinstance(one, Chunk)]
    streams = [get_chunk_data_stream(chunk) for chunk in chunks]
    return b"".join(stream.read(size) for stream, size in streams)
