"""The two channels of a client's one conduit: numbers, what is held until acknowledged, what waits for its turn.

Spec: zenoh-2018 §5.9, §5.10.
"""

from elea.tiny.octets import ACK_NACK, BIT5, BIT7, RELIABLE, SYNC, SYNCH, Broken, vle

__all__ = ["Channels", "Held"]

SYNCH_SECONDS = 0.1
MOST_IGNORED = 3
"""How often in a row a request to send something again is not heeded, since it was just done (Z18-REL-05)."""

SPAN = 64
"""Numbers that an AckNack can speak of."""


class Held:
    """A message that was sent and is not acknowledged."""

    __slots__ = ("header", "ignored", "message", "sn", "when")

    def __init__(self, sn: int, header: int, message: bytes, when: float) -> None:
        self.sn = sn
        self.header = header
        """Where its header is: a marker may stand before it."""
        self.message = message
        self.when = when
        self.ignored = 0

    def again(self, sync: bool) -> bytes:
        """The message, asking for an acknowledgement or not."""
        message = bytearray(self.message)
        message[self.header] = message[self.header] | SYNC if sync else message[self.header] & ~SYNC
        return bytes(message)


class Channels:
    """What a client has for numbered messages. Index 0 is the best-effort channel, 1 the reliable one."""

    def __init__(self, sn_bits: int, window: int) -> None:
        self.dropped = 0
        """Messages without effect: duplicates, without a session, of other resource spaces, with no room."""
        self._bits = sn_bits
        self._circle = 1 << sn_bits
        self._half = self._circle >> 1
        self._width = len(vle(self._circle - 1))
        self._window = max(1, min(window, self._half - 2))
        self._trip = 0.1
        self._start_channels()

    def _start_channels(self) -> None:
        self._next = [0, 0]
        self._held: list[Held] = []
        self._synched = 0.0
        self._unheard = 0  # Synchs that brought nothing on
        self._expected = [0, 0]
        self._placed = [False, False]  # whether it is known with which number a channel begins (Z18-REL-09)
        self._end = 0  # behind the last reliable number that is known to have been sent
        self._ahead: dict[int, tuple[bytes, int]] = {}
        self._answering = False
        self._told = -1  # the number that was asked for last

    # What the session does with it.

    def _say(self, message: bytes) -> None:
        """Have a message sent."""

    def _deliver(self, message: bytes, header: int, sn: int, channel: int) -> None:
        """A message has its turn."""

    def _gap(self, channel: int) -> None:
        """Messages will never come that would have had their turn now."""

    # -- sending -------------------------------------------------------------------------------------------------------

    def _number(self, header: int, rest: bytes, now: float, channel: int = 1, mark: bytes = b"") -> None:
        """Send a message under the next number of a channel."""
        sn = self._next[channel]
        self._next[channel] = (sn + 1) % self._circle
        message = mark + bytes([header]) + vle(sn) + rest
        if channel:
            if not self._held:
                self._unheard = 0
            self._held.append(Held(sn, len(mark), message, now))
            self._synched = now
        self._say(message)

    def _period(self) -> float:
        return max(4 * self._trip, SYNCH_SECONDS)

    def _synch(self, now: float) -> None:
        """Say what is under way, so that the loss of the last message is noticed (Z18-REL-08, 10)."""
        self._synched = now
        count = len(self._held)
        header = SYNCH | RELIABLE | SYNC | (BIT7 if count else 0)
        self._say(bytes([header]) + vle(self._next[1]) + (vle(count) if count else b""))

    def _on_acknack(self, sn: int, mask: int, now: float) -> None:
        """Forget what has arrived, and send again what is asked for; a mask of -1 asks for nothing."""
        oldest = self._held[0].sn if self._held else self._next[1]
        done = (sn - oldest) % self._circle
        if done > len(self._held):
            self._synch(now)  # Z18-REL-12
            return
        if done:
            self._unheard = 0
            self._held = self._held[done:]
        if mask < 0:
            return
        asked = [one for index, one in enumerate(self._held) if not index or mask >> (index - 1) & 1]
        again = [one for one in asked if self._is_due(one, now)]
        for one in again:
            self._say(one.again(one is again[-1]))
            self._synched = now

    def _is_due(self, one: Held, now: float) -> bool:
        """Whether it is to be sent again, or was that just done (Z18-REL-05)."""
        if now - one.when < self._trip and one.ignored < MOST_IGNORED:
            one.ignored += 1
            return False
        one.when = now
        one.ignored = 0
        return True

    # -- receiving -----------------------------------------------------------------------------------------------------

    def _arrive(self, sn: int, channel: int, sync: bool, message: bytes, header: int) -> None:
        """A numbered message, in one piece from its fragment marker on; `header` is where its header is."""
        ahead = (sn - self._expected[channel]) % self._circle
        if not channel:
            if self._placed[0] and ahead >= self._half:
                self.dropped += 1
                return
            if ahead:
                self._gap(0)
            self._placed[0] = True
            self._expected[0] = (sn + 1) % self._circle
            self._deliver(message, header, sn, 0)
            return
        if sync:
            self._answering = True
        if ahead >= self._half or sn in self._ahead or (ahead and len(self._ahead) >= self._window):
            self.dropped += 1
            return
        self._ahead[sn] = (message, header)
        self._know((sn + 1) % self._circle)
        if ahead and self._told != self._expected[1]:
            self._answering = True  # a gap that was not told yet
        self._hand_out()

    def _hand_out(self) -> None:
        while self._expected[1] in self._ahead:
            sn = self._expected[1]
            self._placed[1] = True
            self._expected[1] = (sn + 1) % self._circle
            message, header = self._ahead.pop(sn)
            self._deliver(message, header, sn, 1)

    def _know(self, end: int) -> None:
        if 0 < (end - self._end) % self._circle < self._half:
            self._end = end

    def _on_synch(self, channel: int, sync: bool, sn: int, count: int) -> None:
        """Where the other node is: `sn` comes next, `count` before it can still be had (Z18-REL-11, Z18-BEC-03)."""
        oldest = (sn - count) % self._circle
        expected = self._expected[channel]
        if channel and sync:
            self._answering = True
        if not self._placed[channel]:
            self._placed[channel] = True
            self._skip(channel, oldest)
        elif (sn - expected) % self._circle >= self._half:
            self.dropped += 1  # others have overtaken it
            return
        elif 0 < (oldest - expected) % self._circle < self._half:
            self._skip(channel, oldest)
        if channel:
            self._know(sn)
            self._hand_out()
            if sn != self._expected[1]:
                self._answering = True

    def _skip(self, channel: int, oldest: int) -> None:
        """What is before it is gone."""
        self._expected[channel] = oldest
        self._gap(channel)
        if channel:
            if (oldest - self._end) % self._circle < self._half:
                self._end = oldest
            for sn in list(self._ahead):
                if (sn - oldest) % self._circle >= self._half:
                    del self._ahead[sn]

    def _acknack(self) -> bytes:
        """What has come and what is missing (Z18-REL-03, 04)."""
        expected = self._told = self._expected[1]
        known = (self._end - expected) % self._circle
        if not 0 < known < self._half:
            return bytes([ACK_NACK]) + vle(expected)
        mask = 0
        for step in range(1, min(known, SPAN)):
            if (expected + step) % self._circle not in self._ahead:
                mask |= 1 << (step - 1)
        return bytes([ACK_NACK | BIT5]) + vle(expected) + vle(mask)

    def _check_number(self, sn: int) -> None:
        """Z18-REL-14."""
        if sn >= self._circle:
            raise Broken
