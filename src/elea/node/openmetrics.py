"""OpenMetrics text under construction: what a node's metrics page is made of."""

from __future__ import annotations

__all__ = ["OpenMetrics"]


class OpenMetrics:
    """Families of counters and gauges, each followed by its samples; as a string it is the whole page."""

    def __init__(self, *, descriptors: bool) -> None:
        """See the class.

        Args:
            descriptors: whether the lines that explain the families are wanted.
        """
        self._descriptors = descriptors
        self._lines: list[str] = []

    def family(self, name: str, kind: str, help: str) -> None:
        """Begin a family: a `counter`, whose samples end in `_total`, a `gauge`, or an `info`."""
        if self._descriptors:
            self._lines += (f"# HELP {name} {help}", f"# TYPE {name} {kind}")

    def sample(self, name: str, value: int, **labels: str) -> None:
        """One value of the family."""
        shown = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        self._lines.append(f"{name}{{{shown}}} {value}" if shown else f"{name} {value}")

    def __str__(self) -> str:
        return "\n".join([*self._lines, "# EOF", ""])


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
