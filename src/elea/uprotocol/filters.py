"""Which pairs of source and sink one can listen to, and which messages a listener sees."""

from __future__ import annotations

from elea.uprotocol.attributes import UMessageType
from elea.uprotocol.status import UCode, UStatusError
from elea.uprotocol.uuri import ANY_RESOURCE, UUri

__all__ = ["check_filters", "filter_problem", "is_wanted"]


def filter_problem(source: UUri, sink: UUri | None) -> str:
    """Why nobody can listen with these filters; empty if one can.

    >>> filter_problem(UUri.parse("//s/1/1/CC"), None)
    'without a sink filter the source must be a topic or have the wildcard resource, not CC'
    """
    for what, uri in (("source", source), ("sink", sink)):
        if uri is not None and uri.problem:
            return f"{what} filter {uri}: {uri.problem}"
    wild = source.resource_id == ANY_RESOURCE
    if sink is None:
        if source.is_topic or wild:
            return ""
        return f"without a sink filter the source must be a topic or have the wildcard resource, not {_hex(source)}"
    if sink.is_method:
        # Spec: the public table has only source 0 here; the seed's examples also have the wildcard.
        if source.is_entity or wild:
            return ""
        return f"requests come from resource 0, not {_hex(source)}: say 0 or the wildcard"
    if sink.is_entity:
        return "no message goes from resource 0 to resource 0" if source.is_entity else ""
    # Spec: the public table has the wildcard on both sides only; the Rust library refuses nothing else, nor do we.
    return ""


def check_filters(source: UUri, sink: UUri | None) -> None:
    """Raises UStatusError(INVALID_ARGUMENT) if nobody can listen with these filters."""
    if problem := filter_problem(source, sink):
        raise UStatusError(UCode.INVALID_ARGUMENT, problem)


def is_wanted(type: int, *, has_sink_filter: bool) -> bool:
    """Whether a listener gets a message of a type that its key expression brings.

    `*` also matches the `{}` in the key of a publish message, which has no sink and so matches no sink filter.
    """
    return (type != UMessageType.PUBLISH) == has_sink_filter


def _hex(uri: UUri) -> str:
    return f"{uri.resource_id:X}"
