"""One predicate language for every door: parsed here, compiled where it is needed. See docs/predicates.md."""

from elea.model.predicate.closure import compile_row, compile_test
from elea.model.predicate.predicate import Predicate, is_predicate

__all__ = ["Predicate", "compile_row", "compile_test", "is_predicate"]
