"""What the space passes over, counted."""

from __future__ import annotations

from elea.model.values import value_class

__all__ = ["Ignored"]


@value_class(frozen=False)
class Ignored:
    """How many messages were passed over, by reason. None of them is fatal: the link stays up (13.2)."""

    unknown_face: int = 0
    """From a face that was not added, or has been removed."""
    invalid_key: int = 0
    unknown_declaration: int = 0
    """Undeclared, but never declared."""
    unasked_interest: int = 0
    """From where declarations are pushed anyway: routers, peers of a peer."""
    current_interest: int = 0
    """Current interests are for tokens only (9.3)."""
    unknown_interest: int = 0
    unexpected_final: int = 0
    repeated_query: int = 0
    """A query under the id of one that is still open."""
    unknown_query: int = 0
    """Answers to no open query: most often one that has timed out."""
    too_many_declarations: int = 0
    """Above `MAX_DECLARATIONS`, `MAX_KEY_OCTETS` or `MAX_WILDCARDS`; what they declare does not exist here."""
    too_many_interests: int = 0
    """Above `MAX_INTERESTS`, `MAX_KEY_OCTETS` or `MAX_WILDCARDS`; those about the future are not answered."""
    invalid_predicate: int = 0
    """Predicates of subscribers that are none here, or call a function nobody knows: these get all samples."""
    too_many_queries: int = 0
    """Above `MAX_QUERIES`; answered with an error."""
