"""`elea demo`: a house, a fleet, a vehicle; a broker that keeps what they say; a pipeline on Spark; and the accounts.

Every part is a process of its own, as it would be in the field, so each can be killed while the others go on. The parts
here know each other only through the broker, the files of a directory, and lines of JSON.
"""

from __future__ import annotations

__all__: list[str] = []
