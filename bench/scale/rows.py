"""The names of what is measured, in the order of the table."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Final

__all__ = ["FANS", "FAN_OUT_FLIGHTS", "ORDER", "PROBES", "Fan", "Row"]

FAN_OUT_FLIGHTS: Final = (1, 50)
"""How many samples are put before all must have come: no batches at all, and batches as a stream fills them."""


class Row(StrEnum):
    OPEN_MS = "open, ms per session"
    OPEN_CPU = "open, CPU ms per session"
    MEMORY = "memory, kB per idle client"
    THREADS = "threads"
    REST = "at rest, CPU %"
    ALONE_P50 = "probe µs p50, no other clients"
    ALONE_P99 = "probe µs p99, no other clients"
    IDLE_P50 = "probe µs p50, others idle"
    IDLE_P99 = "probe µs p99, others idle"
    BUSY_P50 = "probe µs p50, half put once a second"
    BUSY_P99 = "probe µs p99, half put once a second"
    BUSY = "half put once a second, CPU %"
    BUSY_RATE = "half put once a second, deliveries/s"


@dataclass(frozen=True, slots=True)
class Fan:
    """One way to put samples from one client to all, or from all to one.

    `limit` is what is wanted of the CPU per delivery: the most, by eclipse-zenoh's.
    """

    name: str
    limit: float
    IN: ClassVar[Fan]

    @classmethod
    def out(cls, flight: int) -> Fan:
        return cls(f"fan-out, {flight} at a time", 1.0)

    @property
    def cost(self) -> str:
        return f"{self.name}, CPU µs per delivery"

    @property
    def rate(self) -> str:
        return f"{self.name}, deliveries/s"


Fan.IN = Fan("fan-in", 0.8)

PROBES: Final[dict[str, tuple[Row, Row]]] = {
    "alone": (Row.ALONE_P50, Row.ALONE_P99),
    "idle": (Row.IDLE_P50, Row.IDLE_P99),
    "busy": (Row.BUSY_P50, Row.BUSY_P99),
}

FANS: Final = (*map(Fan.out, FAN_OUT_FLIGHTS), Fan.IN)

ORDER: Final[tuple[str, ...]] = (
    Row.OPEN_MS,
    Row.OPEN_CPU,
    Row.MEMORY,
    Row.THREADS,
    Row.REST,
    *(name for fan in FANS for name in (fan.cost, fan.rate)),
    Row.BUSY,
    Row.BUSY_RATE,
    *(name for pair in PROBES.values() for name in pair),
)
