"""Vectors of the early dialects' rules that need no bytes: numbers, names, selections, windows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from elea.model.errors import InvalidResource, InvalidSelector
from tests.vectors.cases import Case, Json, Record, check_equal

__all__ = ["semantics_case"]

SCHEMES = {"zenoh2018": "zenoh://", "xrce2017": "xrce://"}

Compute = Callable[[Any, str], Json]


def semantics_case(records: list[Record], index: int) -> Case:
    """A record with category, input and expected result."""
    record = records[index]
    compute = CATEGORIES.get(record["category"])
    if compute is None:
        return Case(record["name"], reason=f"semantics of category {record['category']}, which is not known here")
    return Case(record["name"], partial(_check, record, compute))


def _check(record: Record, compute: Compute) -> None:
    result = compute(record["input"], record.get("dialect", "zenoh2018"))
    check_equal("result", result, record["expected"])


def _acknack_request(given: Record, _: str) -> Json:
    from elea.protocol.early import requested

    return list(requested(given["sn"], given["mask"], given["snsize"]))


def _acknack_mask(given: Record, _: str) -> Json:
    from elea.protocol.early import acknack

    return acknack(given["expected"], given["missing"], given["snsize"])._asdict()


def _serial_less(given: Record, _: str) -> Json:
    from elea.protocol.early import serial_less

    return serial_less(given["a"], given["b"], given["snsize"])


def _synch_available(given: Record, _: str) -> Json:
    from elea.protocol.early import synch_available

    return list(synch_available(given["sn"], given["count"], given["snsize"]))


def _window_open(given: Record, _: str) -> Json:
    from elea.protocol.early import window_open

    return window_open(given["temporalOrigin"], given["period"], given["duration"], given["t"])


def _commit_mode(given: Record, _: str) -> Json:
    from elea.protocol.early import may_send

    return may_send(given["mode"], given["unanswered"])._asdict()


def _dds_resource(given: Record, dialect: str) -> Json:
    from elea.dds.partition import DdsDurability, resource_of

    return resource_of(
        given["partition"],
        given["topic"],
        DdsDurability[given["durability"]],
        separator=given["separator"],
        scheme=SCHEMES[dialect],
    )


def _selection_parse(given: str, dialect: str) -> Json:
    from elea.model.resource import Selection

    try:
        selection = Selection.parse(given, SCHEMES[dialect])
    except (InvalidResource, InvalidSelector):
        return None
    return {
        "path": selection.path,
        "markers": list(selection.tags),
        "predicate": selection.predicate or None,
        "canonical": str(selection),
    }


def _match(given: list[str], dialect: str) -> Json:
    from elea.model.resource import Resource, paths_intersect, resources_match

    scheme = SCHEMES[dialect]
    try:
        one, other = (Resource.parse(text, scheme) for text in given)
    except InvalidResource:
        # A vector may ask about a path that is no valid resource, such as one that ends in a slash.
        first, second = (text.removeprefix(scheme) for text in given)
        return paths_intersect(first, second)
    return resources_match(one, other)


CATEGORIES: dict[str, Compute] = {
    "acknack-request": _acknack_request,
    "acknack-mask": _acknack_mask,
    "serial-less": _serial_less,
    "synch-available": _synch_available,
    "window-open": _window_open,
    "commit-mode": _commit_mode,
    "dds-resource": _dds_resource,
    "selection-parse": _selection_parse,
    "match": _match,
}
