"""What payloads say: the fields of a sample by its encoding, and predicates over them. See docs/predicates.md."""

from elea.content.contents import Contents, decode_content
from elea.content.samplepredicate import SamplePredicate, SampleView, compile_sample

__all__ = ["Contents", "SamplePredicate", "SampleView", "compile_sample", "decode_content"]
