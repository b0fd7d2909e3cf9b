"""The path of a DDS partition against the substitution as the papers write it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from elea.dds.partition import DdsDurability, path_of, reader_resource_of, resource_of
from elea.model.resource import Resource, resources_match

partitions = st.text("ab.:/*?", max_size=24)
separators = st.sampled_from(["", ".", ":", "::", "/", "./", "ab"])


def papers_path(partition: str, separator: str) -> str:
    """The plain twin: the loop of the papers, word for word."""
    before = None
    while before != partition:
        before = partition
        if separator:
            partition = partition.replace(separator, "/")
        partition = partition.replace("**", "*").replace("*?", "?*")
    return partition.replace("*", "**")


@given(partitions, separators)
def test_path_is_that_of_the_papers(partition: str, separator: str) -> None:
    expected = papers_path(partition, separator)
    path = path_of(partition, separator=separator)

    if expected and "" in expected.split("/"):
        assert path is None
    else:
        assert path == expected


@given(st.text(max_size=24), st.text(min_size=1, max_size=24), st.sampled_from(DdsDurability))
def test_resource_is_one_of_the_early_dialects(partition: str, topic: str, durability: DdsDurability) -> None:
    for made in (resource_of(partition, topic, durability), reader_resource_of(partition, topic, durability)):
        if made is not None:
            assert str(Resource.parse(made)) == made


@given(st.sampled_from(DdsDurability), st.sampled_from(DdsDurability))
def test_reader_takes_what_lasts_as_long_as_it_asks(offered: DdsDurability, asked: DdsDurability) -> None:
    written, read = resource_of("p", "T", offered), reader_resource_of("p", "T", asked)
    assert written is not None
    assert read is not None

    assert resources_match(Resource.parse(read), Resource.parse(written)) is (offered.kept >= asked.kept)
