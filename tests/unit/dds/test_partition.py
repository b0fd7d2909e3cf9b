"""DDS partitions to resources of the early dialects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from elea.dds.partition import DdsDurability, path_of, reader_resource_of, resource_of
from elea.model.qos import Durability

VECTORS = Path(__file__).parents[2] / "vectors"
SCHEMES = {"zenoh2018": "zenoh://", "xrce2017": "xrce://"}


def early_vectors() -> list[Any]:
    records = [
        record
        for dialect in SCHEMES
        for record in json.loads((VECTORS / dialect / "semantics.json").read_text())
        if record["category"] == "dds-resource"
    ]
    assert records
    return [pytest.param(record, id=f"{record['dialect']}-{record['name']}") for record in records]


@pytest.mark.parametrize("record", early_vectors())
def test_resource_of_early_vectors(record: dict[str, Any]) -> None:
    given = record["input"]
    resource = resource_of(
        given["partition"],
        given["topic"],
        DdsDurability[given["durability"]],
        separator=given["separator"],
        scheme=SCHEMES[record["dialect"]],
    )

    assert resource == record["expected"]


@pytest.mark.parametrize("record", json.loads((VECTORS / "dds" / "partition_map.json").read_text())["vectors"])
def test_resource_of_partition_map(record: dict[str, Any]) -> None:
    partition, separator = record["partition"], record["separator"]
    durability = DdsDurability[record["durability"]]

    assert path_of(partition, separator=separator) == record["path"]
    assert resource_of(partition, record["topic"], durability, separator=separator) == record["resource"]


@pytest.mark.parametrize("partition", [".", "a.", ".a", "a..b", "/a", "a/", "a//b", ".*"])
def test_partition_with_an_empty_part_is_not_mapped(partition: str) -> None:
    assert path_of(partition) is None
    assert resource_of(partition, "T") is None
    assert reader_resource_of(partition, "T") is None


@pytest.mark.parametrize("topic", ["", "/T", "T/", "a//b", "property", "a/property"])
def test_topic_without_a_legal_name_is_not_mapped(topic: str) -> None:
    assert resource_of("p", topic) is None


@pytest.mark.parametrize(
    ("partition", "separator", "path"),
    [
        ("a.b", "", "a.b"),
        ("a.b", "::", "a.b"),
        ("a../b", "./", "a/b"),
        ("a////b", "//", "a/b"),
        ("a b", ".", "a%20b"),
        ("a b", " ", "a/b"),
        ("a#{b,c}%", ".", "a%23%7Bb%2Cc%7D%25"),
        ("[ab]$é\n", ".", "%5Bab%5D%24%C3%A9%0A"),
        ("a-_~!&'()+;=:@", ".", "a-_~!&'()+;=:@"),
    ],
)
def test_separators_and_escapes(partition: str, separator: str, path: str) -> None:
    assert path_of(partition, separator=separator) == path


def test_wildcards_of_a_topic_are_plain_characters() -> None:
    assert resource_of("p", "rt/a*?") == "zenoh://p/rt/a%2A%3F"


@pytest.mark.parametrize("separator", ["*", "?", ".*"])
def test_separator_with_a_wildcard_is_refused(separator: str) -> None:
    with pytest.raises(ValueError, match="wildcard"):
        path_of("a", separator=separator)


@pytest.mark.parametrize(
    ("durability", "tag"),
    [
        (DdsDurability.VOLATILE, ""),
        (DdsDurability.TRANSIENT_LOCAL, "#{persistent,transient}"),
        (DdsDurability.TRANSIENT, "#{persistent,transient}"),
        (DdsDurability.PERSISTENT, "#persistent"),
    ],
)
def test_reader_asks_for_every_tag_that_lasts_as_long(durability: DdsDurability, tag: str) -> None:
    assert reader_resource_of("p", "T", durability) == f"zenoh://p/T{tag}"


def test_durability_of_dds_maps_to_that_of_the_space() -> None:
    assert [kind.kept for kind in DdsDurability] == [
        Durability.VOLATILE,
        Durability.TRANSIENT,
        Durability.TRANSIENT,
        Durability.PERSISTENT,
    ]
