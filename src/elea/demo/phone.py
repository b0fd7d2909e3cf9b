"""The phone of the demo, a uProtocol entity that calls the vehicle now and then, and keeps a ledger of its calls."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from elea.demo import ledger
from elea.demo.world import Origin

if TYPE_CHECKING:
    import elea

__all__ = ["PHONE", "Phone"]

PHONE: Final = "phone"
BETWEEN_SECONDS: Final = 0.5
TTL_MS: Final = 2_000
LIMITS: Final = (30.0, 50.0, 70.0, 100.0, 130.0)


class Phone:
    """Calls in a thread of its own, from `start` to `stop`."""

    def __init__(self, session: elea.Session, path: Path, seed: int, answered: Callable[[], None]) -> None:
        """Call over a session, and write the ledger to a file; `answered` is called with every answer."""
        self.seconds: list[float] = []
        """How long calls took that were answered."""

        self.failed: Counter[str] = Counter()
        """Calls that were not, by code."""

        self._session = session
        self._ledger = ledger.Writer(path)
        self._chance = random.Random(f"{PHONE} {seed}")
        self._answered = answered
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="elea-demo-phone", daemon=True)

    def start(self) -> None:
        """Call."""
        self._thread.start()

    def stop(self) -> None:
        """Call no more; a call that is under way is waited for."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        self._ledger.close()

    def _run(self) -> None:
        from elea.uprotocol import RpcClient, UStatusError, UTransportZenoh

        number = 0
        with UTransportZenoh(self._session, "//demo-phone/8020/1/0") as transport, RpcClient(transport) as client:
            while not self._over.wait(BETWEEN_SECONDS):
                self._ledger.note("tried", number, number + 1)
                try:
                    self._call(client, number)
                except UStatusError as error:
                    self.failed[error.code.name] += 1
                number += 1

    def _call(self, client: object, number: int) -> None:
        from elea.demo.drivemessage import Drive
        from elea.demo.vehicle import SET_LIMIT
        from elea.uprotocol import CallOptions, RpcClient, UCode, UPayload, UStatusError

        assert isinstance(client, RpcClient)
        began = time.time()
        asked = Drive(origin=Origin(PHONE, number, int(began * 1e6)).text(), allowed=self._chance.choice(LIMITS))
        answer = client.invoke_method(SET_LIMIT, UPayload.protobuf(asked), CallOptions(ttl=TTL_MS))
        given = None if answer is None else answer.unpack(Drive)
        if given is None or (given.origin, given.allowed) != (asked.origin, asked.allowed):
            raise UStatusError(UCode.DATA_LOSS, f"asked {asked}, answered {given}")
        self.seconds.append(time.time() - began)
        self._ledger.note("acknowledged", number, number + 1)
        self._answered()
