"""From a vector file to its cases: the kind is told by the shape of what the file holds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.vectors.behaviour import behaviour_cases
from tests.vectors.cases import Case, Record
from tests.vectors.cdr import cdr_cases
from tests.vectors.filters import filter_cases
from tests.vectors.octets import malformed_case, valid_case, zenoh1_case
from tests.vectors.refusals import definitions_case, form_case
from tests.vectors.semantics import semantics_case
from tests.vectors.uprotocol import uprotocol_case, uprotocol_cases
from tests.vectors.values import keyexpr_cases, linkstate_cases, partition_cases, primitive_cases

__all__ = ["cases_of"]

ListKind = Callable[[list[Record], int], Case]
DictKind = Callable[[Record], Iterator[Case]]

# A member that only this kind has -> the kind. The first that fits counts.
LIST_KINDS: tuple[tuple[frozenset[str], ListKind], ...] = (
    (frozenset({"category", "input", "expected"}), semantics_case),
    (frozenset({"hex", "error"}), malformed_case),
    (frozenset({"form", "error"}), form_case),
    (frozenset({"definitions", "error"}), definitions_case),
    (frozenset({"unit", "hex", "decoded", "dialect"}), valid_case),
    (frozenset({"hex", "decoded"}), zenoh1_case),
    (frozenset({"hex_head", "decoded"}), zenoh1_case),
)

DICT_KINDS: tuple[tuple[frozenset[str], DictKind], ...] = (
    (frozenset({"valid", "autocanonize", "pairs"}), keyexpr_cases),
    (frozenset({"vle", "initial_sn"}), primitive_cases),
    (frozenset({"edges", "rings"}), linkstate_cases),
)

# Records that only make sense one after the other.
BEHAVIOUR = frozenset({"sent_network_message_hex", "router_answers"})

PARTITION = frozenset({"partition", "topic", "durability", "resource"})
FILTER = frozenset({"expression", "parameters", "ids"})

CDR = frozenset({"type", "value", "hex"})

UNKNOWN = "kind of vector not known here"


def cases_of(path: Path) -> list[Case]:
    """The cases of one file; a file that cannot be read is one failing case."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        problem = f"cannot be read: {error}"

        def fail() -> None:
            raise ValueError(problem)

        return [Case("file", fail)]
    if isinstance(content, list):
        if content and all(isinstance(record, dict) and record.keys() >= BEHAVIOUR for record in content):
            return list(behaviour_cases(content))
        return [_list_case(content, index) for index in range(len(content))]
    return list(_dict_cases(content)) if isinstance(content, dict) else [Case("file", reason=UNKNOWN)]


def _list_case(records: list[Record], index: int) -> Case:
    record = records[index]
    if not isinstance(record, dict):
        return Case(f"record {index}", reason=UNKNOWN)
    record.setdefault("name", f"record {index}")
    for members, kind in LIST_KINDS:
        if members <= record.keys():
            return kind(records, index)
    return uprotocol_case(record, str(record["name"])) or Case(str(record["name"]), reason=UNKNOWN)


def _dict_cases(content: Record) -> Iterator[Case]:
    for members, kind in DICT_KINDS:
        if members & content.keys():
            yield from kind(content)
            return
    if cases := uprotocol_cases(content):
        yield from cases
        return
    records = content.get("vectors")
    if not isinstance(records, list) or not records or not isinstance(records[0], dict):
        yield Case("file", reason=UNKNOWN)
    elif records[0].keys() >= PARTITION:
        yield from partition_cases(content)
    elif records[0].keys() >= FILTER:
        yield from filter_cases(content)
    elif records[0].keys() >= CDR:
        yield from cdr_cases(content)
    else:
        yield from _skipped(content)


def _skipped(content: Record) -> Iterator[Case]:
    """Every record of a file counts as skipped, those in its other lists too."""
    for name, records in content.items():
        if isinstance(records, list) and name != "rows":
            yield from (Case(f"{name} {index}", reason=UNKNOWN) for index in range(len(records)))
