"""Very many clients in one asyncio process: they open, keep their leases, put, and count what comes."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Callable, Sequence
from typing import Final, Self

from bench.scale.light import KEEP_ALIVE, KEEP_ALIVE_EVERY, LightSession
from bench.scale.limits import source_address
from bench.scale.tls import HOST, Cipher
from elea.model.errors import EleaError

__all__ = ["Client", "Crowd", "CrowdFailed", "in_turn"]

AT_ONCE: Final = 50  # clients that open at the same time; half of what routers accept by default
OPENING: Final = 60.0  # seconds that these may take
ALL_OPENING: Final = 600.0  # seconds that all may take
QUIET: Final = 5.0  # seconds without a sample after which the missing ones are lost
SLOT: Final = 0.001  # seconds; what happens once a period is spread over it in such steps
STRIDE: Final = 61  # a prime: few clients do not all have their turn in the first of many slots
ROOM: Final = 1 << 18


class CrowdFailed(Exception):
    """The clients could not do what was asked of them; the text says how far they came, and why."""


class Client(asyncio.BufferedProtocol):
    """One client: a light session on an asyncio transport."""

    __slots__ = ("_cipher", "_crowd", "_transport", "number", "ready", "session", "talked")

    def __init__(self, crowd: Crowd, number: int) -> None:
        self.number = number
        self._crowd = crowd
        loop = asyncio.get_running_loop()
        self.session = LightSession(number, loop.time())
        self.ready: asyncio.Future[None] = loop.create_future()
        self.talked = False
        self._cipher = Cipher(crowd.context) if crowd.context else None
        self._transport: asyncio.Transport

    def send(self, messages: bytes) -> None:
        """Network messages, in a frame of their own."""
        self._write(self.session.frame(messages))

    def keep_alive(self) -> None:
        """As real clients do: only who has said nothing else since the last time needs to."""
        if not self.talked:
            self._write(KEEP_ALIVE)
        self.talked = False

    def close(self) -> None:
        self._transport.close()

    # -- what asyncio tells --------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._crowd.links.add(self)
        if self._cipher is None:
            self._write(self.session.begin(asyncio.get_running_loop().time()))
        else:
            self._cipher.receive(b"")
            self._transport.write(self._cipher.to_send())

    def get_buffer(self, sizehint: int) -> memoryview:
        """One buffer is enough for all: `buffer_updated` comes before the next one asks for it."""
        return self._crowd.buffer

    def buffer_updated(self, nbytes: int) -> None:
        data = bytes(self._crowd.buffer[:nbytes])
        try:
            self._take(data if self._cipher is None else self._deciphered(self._cipher, data))
        except (EleaError, ssl.SSLError) as error:
            self._end(str(error))
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._crowd.links.discard(self)
        self._end(self.session.ended or (str(exc) if exc else "the router closed the connection"))

    def _take(self, data: bytes) -> None:
        session = self.session
        before = session.samples
        if answer := session.receive(data, asyncio.get_running_loop().time()):
            self._write(answer)
        if session.opened and not self.ready.done():
            self.ready.set_result(None)
        if session.samples > before:
            self._crowd.count(session.samples - before)

    def _deciphered(self, cipher: Cipher, data: bytes) -> bytes:
        was_open = cipher.opened
        plain = cipher.receive(data)
        if cipher.opened and not was_open:
            cipher.write(self.session.begin(asyncio.get_running_loop().time()))
        if waiting := cipher.to_send():
            self._transport.write(waiting)
        return plain

    def _write(self, data: bytes) -> None:
        if self._transport.is_closing():
            return  # `Crowd.check` will tell
        self.talked = True
        if self._cipher is not None:
            self._cipher.write(data)
            data = self._cipher.to_send()
        self._transport.write(data)

    def _end(self, reason: str) -> None:
        if not self.ready.done():
            self.ready.set_exception(CrowdFailed(reason))
            self.ready.exception()  # seen: asyncio need not complain if nobody waits any more
        self._crowd.ended(reason)


class Crowd:
    """All clients of one router. `received` counts the samples of all of them together."""

    def __init__(self, port: int, context: ssl.SSLContext | None = None) -> None:
        self.context = context
        self.clients: list[Client] = []
        self.links: set[Client] = set()  # also of those that are not open yet
        self.received = 0
        self.buffer = memoryview(bytearray(ROOM))
        self._port = port
        self._goal = 0
        self._reached: asyncio.Future[None] | None = None
        self._ended: list[str] = []
        self._leaving = False
        self._keeping: asyncio.Task[None]

    async def __aenter__(self) -> Self:
        self._keeping = asyncio.create_task(in_turn(self.clients, KEEP_ALIVE_EVERY, Client.keep_alive))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._leaving = True
        self._keeping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._keeping
        for client in self.links:
            client.close()
        while self.links:
            await asyncio.sleep(SLOT)

    async def open(self, clients: int, greet: Callable[[Client], None]) -> None:
        """That many more; `greet` is called with each when its session is open.

        Raises:
            CrowdFailed: not all could be opened.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + ALL_OPENING
        goal = len(self.clients) + clients
        while len(self.clients) < goal:
            first = len(self.clients)
            left = min(OPENING, end - loop.time())
            new = range(first, min(goal, first + AT_ONCE))
            problems: list[str] = []
            for found in await asyncio.gather(*(self._open(number, left) for number in new)):
                if isinstance(found, Client):
                    greet(found)
                    self.clients.append(found)
                else:
                    problems.append(found)
            if problems:
                raise CrowdFailed(f"{len(self.clients)} of {goal} clients were open, then: {problems[0]}")

    async def _open(self, number: int, timeout: float) -> Client | str:
        """A client, or why there is none."""
        loop = asyncio.get_running_loop()
        source = source_address(number)
        local = (source, 0) if source else None
        try:
            async with asyncio.timeout(timeout):
                _, client = await loop.create_connection(
                    lambda: Client(self, number), HOST, self._port, local_addr=local
                )
                await client.ready
        except TimeoutError:
            return f"a session did not open in {timeout:.0f} s"
        except (OSError, CrowdFailed) as error:
            return str(error)
        return client

    def count(self, samples: int) -> None:
        """Some came, to whomever."""
        self.received += samples
        if self.received >= self._goal and self._reached is not None and not self._reached.done():
            self._reached.set_result(None)

    def ended(self, reason: str) -> None:
        """A session did."""
        if not self._leaving:
            self._ended.append(reason)

    async def until(self, goal: int, quiet: float = QUIET) -> bool:
        """Wait until that many have come in all; False if no more come."""
        while self.received < goal:
            before = self.received
            self._goal, self._reached = goal, asyncio.get_running_loop().create_future()
            await asyncio.wait([self._reached], timeout=quiet)
            if self.received == before:
                return False
        return True

    def check(self) -> None:
        """Raises:
        CrowdFailed: a session is no longer there, or a real client would have ended it.
        """
        if self._ended:
            raise CrowdFailed(f"{len(self._ended)} of {len(self.clients)} sessions ended: {self._ended[0]}")
        now = asyncio.get_running_loop().time()
        if expired := sum(client.session.expires_at < now for client in self.clients):
            raise CrowdFailed(
                f"the router was silent for its whole lease with {expired} of {len(self.clients)} clients"
            )


async def in_turn(clients: Sequence[Client], period: float, act: Callable[[Client], None]) -> None:
    """For ever: `act` with each of the clients, also those that come later, once in `period` seconds.

    What could not be done in time is done at once: a busy loop must not cost anybody its lease.
    """
    loop = asyncio.get_running_loop()
    slots = max(1, round(period / SLOT))
    turn, due = 0, loop.time()
    while True:
        late = int((loop.time() - due) / SLOT)
        for behind in range(min(late + 1, slots)):
            for client in clients[(turn + behind) * STRIDE % slots :: slots]:
                act(client)
        turn += late + 1
        due += SLOT * (late + 1)
        await asyncio.sleep(max(0.0, due - loop.time()))
