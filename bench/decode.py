"""What does it cost to read typed payloads? CPU time for each, sample by sample and as columns, beside the libraries.

    python -m bench.decode [--rounds 5] [--rows 50000] [--json]

The message is that of dds.md section 6: {int64, 3 x float64, int32, string, float32}. Every figure is the best of some
rounds of CPU time; a library that is not installed is left out.
"""

from __future__ import annotations

import argparse
import json
import struct
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

ROS = "int64 stamp\nfloat64[3] position\nint32 id\nstring name\nfloat32 speed"
IDL = "struct Pose { long long stamp; double position[3]; long id; string name; float speed; };"
FIXED = "struct Imu { long long stamp; double x, y, z; long id; float speed; };"
DDL = {"stamp": "int64", "position": "list", "id": "int32", "name": "string", "speed": "float"}

Case = tuple[str, str, Callable[[], int]]
"""Payload, reader, what reads all payloads and tells how many."""


def cpu_ns(work: Callable[[], int], rounds: int) -> float:
    """CPU nanoseconds for each message, of the best round."""
    work()
    found = []
    for _ in range(rounds):
        start = time.process_time_ns()
        done = work()
        found.append((time.process_time_ns() - start) / done)
    return min(found)


def row(at: int) -> dict[str, Any]:
    """One message."""
    name = f"robot-{at % 100}"
    return {"stamp": at, "position": [at * 0.5, -1.5, 2.0], "id": at % 1000, "name": name, "speed": at % 64 / 4}


def cdr(at: int) -> bytes:
    """The message in CDR."""
    one = row(at)
    name: bytes = one["name"].encode() + b"\0"
    head = struct.pack("<qdddi", one["stamp"], *one["position"], one["id"])
    text = struct.pack("<I", len(name)) + name
    return b"\0\1\0\0" + head + text + bytes(-len(head + text) % 4) + struct.pack("<f", one["speed"])


def fixed(at: int) -> bytes:
    """A message without a text."""
    return b"\0\1\0\0" + struct.pack("<qdddif", at, at * 0.5, -1.5, 2.0, at % 1000, at % 64 / 4)


def descriptors() -> bytes:
    """The message for protobuf."""
    from google.protobuf import descriptor_pb2 as d

    kinds = {"stamp": 3, "position": 1, "id": 5, "name": 9, "speed": 2}
    file = d.FileDescriptorProto(name="pose.proto", package="demo", syntax="proto3")
    message = file.message_type.add(name="Pose")
    for number, (name, kind) in enumerate(kinds.items(), 1):
        label: Any = 3 if name == "position" else 1
        message.field.add(name=name, number=number, type=kind, label=label)
    found: bytes = d.FileDescriptorSet(file=[file]).SerializeToString()
    return found


def each(decode: Callable[[bytes], object], payloads: list[bytes]) -> Callable[[], int]:
    """Reads them one by one."""

    def work() -> int:
        for payload in payloads:
            decode(payload)
        return len(payloads)

    return work


def whole(decode: Callable[[Any], object], payloads: list[bytes]) -> Callable[[], int]:
    """Reads them as a column."""
    import pyarrow as pa

    column = pa.array(payloads, pa.binary())

    def work() -> int:
        decode(column)
        return len(payloads)

    return work


def cdr_cases(rows: int) -> Iterator[Case]:
    """CDR with and without a text."""
    from elea.columnar.cdrcolumns import CdrColumns
    from elea.content.cdr import CdrReader
    from elea.content.schema import parse_idl

    payloads = [cdr(at) for at in range(rows)]
    its = parse_idl(IDL)["Pose"]
    yield "CDR", "elea, sample by sample", each(CdrReader(its).decode, payloads)
    yield "CDR", "elea, columns", whole(CdrColumns(its).decode, payloads)
    try:
        from rosbags.typesys import Stores, get_types_from_msg, get_typestore
    except ImportError:
        return
    store = get_typestore(Stores.EMPTY)
    store.register(get_types_from_msg(ROS, "demo/msg/Pose"))
    yield "CDR", "rosbags", each(lambda payload: store.deserialize_cdr(payload, "demo/msg/Pose"), payloads)
    plain = [fixed(at) for at in range(rows)]
    imu = parse_idl(FIXED)["Imu"]
    yield "CDR, numbers only", "elea, sample by sample", each(CdrReader(imu).decode, plain)
    yield "CDR, numbers only", "elea, columns", whole(CdrColumns(imu).decode, plain)


def protobuf_cases(rows: int) -> Iterator[Case]:
    """Protobuf by a descriptor."""
    try:
        from google.protobuf import message_factory
    except ImportError:
        return
    from elea.columnar.protobufcolumns import ProtobufColumns
    from elea.content.protobuf import descriptor_in, message_decoder

    descriptor = descriptor_in(descriptors(), "demo.Pose")
    made = message_factory.GetMessageClass(descriptor)
    payloads = [made(**row(at)).SerializeToString() for at in range(rows)]
    yield "protobuf", "elea, sample by sample", each(message_decoder(descriptors(), "demo.Pose"), payloads)
    yield "protobuf", "elea, columns", whole(ProtobufColumns(descriptor).decode, payloads)
    yield "protobuf", "the library, parsing alone", each(made.FromString, payloads)


def json_cases(rows: int) -> Iterator[Case]:
    """JSON, as Spark's source reads it."""
    import pyarrow as pa

    from elea.content.contents import decode_json
    from elea.spark.payload import decoder

    payloads = [json.dumps(row(at)).encode() for at in range(rows)]
    kinds = {"int64": pa.int64(), "int32": pa.int32(), "string": pa.string(), "float": pa.float32()}
    schema = pa.schema([(name, kinds.get(kind, pa.list_(pa.float64()))) for name, kind in DDL.items()])
    yield "JSON", "elea, sample by sample", each(decode_json, payloads)
    yield "JSON", "elea, columns", whole(decoder("json", schema), payloads)
    yield "JSON", "json.loads", each(json.loads, payloads)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    for cases in (cdr_cases, protobuf_cases, json_cases):
        for payload, reader, work in cases(args.rows):
            spent = cpu_ns(work, args.rounds)
            form = {"payload": payload, "reader": reader, "cpu_ns": round(spent), "per_second": round(1e9 / spent)}
            print(json.dumps(form) if args.json else f"{payload:18} {reader:28} {spent:8.0f} ns {1e9 / spent:12,.0f}/s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
