"""The session of a client: opening, leases, declarations, samples in and out, and what other nodes say.

Spec: zenoh-2018 §5.2 to §5.7, §5.11 to §5.13.
"""

from elea.tiny.channels import Channels
from elea.tiny.octets import (
    ACCEPT,
    ACK_NACK,
    BATCHED,
    BINDING,
    BIT5,
    BIT6,
    BIT7,
    CLOSE,
    COMMIT,
    CONDUIT,
    DECLARE,
    FORGET,
    FORGET_SUBSCRIBER,
    FRAG,
    HELLO,
    KEEP_ALIVE,
    OPEN_ID,
    PING,
    PONG,
    PUBLISHER,
    PULL,
    RELIABLE,
    RESOURCE,
    RESULT,
    RSPACE,
    SELECTION,
    STREAM,
    SUBSCRIBER,
    SYNC,
    SYNCH,
    WRITE,
    Broken,
    Event,
    read_sized,
    read_vle,
    sized,
    vle,
)

__all__ = ["CLOSED", "CLOSING", "OPEN", "OPENING", "Client", "turn"]

MYPY = False  # what a type checker takes for true; MicroPython has no such module
if MYPY:
    from collections.abc import Callable

CLOSED, OPENING, OPEN, CLOSING = 0, 1, 2, 3
NUMBERED = (DECLARE, STREAM, BATCHED, WRITE, PULL)

RETRY_SECONDS = 1.0
OPEN_RETRIES = 10
PING_SECONDS = 5.0
FAREWELL_SECONDS = 1.0
WANTED = 256
"""Ids that are remembered as listened to; for those above nothing is sent."""

GIVEN_UP = 100
"""Synchs without progress after which the other node is given up: it is there, and acknowledges nothing."""


def turn(
    client: "Client",
    write: "Callable[[bytes], object]",
    read: "Callable[[float], bytes | None]",
    clock: "Callable[[], float]",
    most: float = 1.0,
) -> "list[Event]":
    """A small blocking loop calls this: write what is due, wait for at most `most` seconds, take what came.

    `read` waits for the seconds it is given and returns a datagram or some bytes of a stream, or nothing.
    """
    for packet in client.poll(clock()):
        write(packet)
    data = read(max(0.0, min(most, client.deadline() - clock())))
    found = client.receive(data, clock()) if data else []
    for packet in client.poll(clock()):
        write(packet)
    return found + client.taken()


class Series:
    """Fragments of one sample, in their order (§5.13)."""

    __slots__ = ("base", "count", "got", "id", "name", "payload", "prid")

    def __init__(self, base: int, count: int, id: int, prid: int, name: bytes) -> None:
        self.base = base
        self.count = count
        """How many they are; 0 if nobody has said so."""
        self.got = 0
        self.id = id
        self.prid = prid
        self.name = name
        self.payload = b""


class Client(Channels):
    """A session with a broker or another node.

    Args:
        pid: who this is, 1 to 16 bytes; at an MTU of 20 at most 8.
        mtu: the largest packet to send, 20 or more.
        sn_bits: length of numbers, 4 to 63; with 7 every message saves a byte.
        window: messages sent reliably that may wait for an acknowledgement, or received that wait for one before them.
        lease: seconds within which it says something; 0 for no promise.
        streamed: packets have their size before them, as on serial lines and TCP.
        largest: bytes of a sample put together from fragments, and of a packet of a stream.
    """

    def __init__(
        self,
        pid: bytes,
        dialect: str = "zenoh2018",
        *,
        mtu: int = 1472,
        sn_bits: int = 14,
        window: int = 8,
        lease: float = 10.0,
        streamed: bool = False,
        largest: int = 4096,
    ) -> None:
        if dialect not in ("zenoh2018", "xrce2017"):
            raise ValueError("dialect is zenoh2018 or xrce2017, not " + dialect)
        if not 1 <= len(pid) <= 16 or not 4 <= sn_bits <= 63 or mtu < 20:
            raise ValueError("pid has 1 to 16 bytes, sn_bits is 4 to 63, mtu at least 20")
        Channels.__init__(self, sn_bits, window)
        self.state = CLOSED
        self.reason = 0
        """With which the session has ended."""
        self.wanted: list[int] = []
        """Ids of ours that somebody listens to (Z18-DAT-01)."""
        self.is_2017 = dialect == "xrce2017"
        self._pid = pid
        self._mtu = mtu
        self._lease = max(1, int(lease * 10)) if lease else 0  # 0 would promise nothing
        self._peer_lease = 0
        self._streamed = streamed
        self._largest = largest
        self._out: list[bytes] = []
        self._events: list[Event] = []
        self._heard = self._said = self._pinged = self._asked = 0.0
        self._tries = 0
        self._start()

    def _start(self) -> None:
        self._start_channels()
        self.wanted = []
        self._stream = b""
        self._series: list[Series | None] = [None, None]
        self._declaring: list[bytes] = []
        self._results: list[bytes] = []
        self._commit = 0
        self._is_waiting = False

    # -- what a program does -------------------------------------------------------------------------------------------

    def open(self, now: float) -> None:
        """Begin a session; what an earlier one left is forgotten."""
        if self.state != CLOSED:
            raise ValueError("there is a session")
        self.state = OPENING
        self._tries = 0
        self._start()
        self._say_open(now)

    def close(self, now: float) -> None:
        """Say Close, and wait a moment for the answer."""
        if self.state in (OPEN, OPENING):
            self._say(bytes([CLOSE]) + sized(self._pid) + b"\0")
            self.state = CLOSING if self.state == OPEN else CLOSED
            self._asked = now

    @property
    def is_open(self) -> bool:
        return self.state == OPEN

    @property
    def is_settled(self) -> bool:
        """Whether everything that was sent reliably is acknowledged, and every declaration answered."""
        return not self._held and not self._declaring and not self._is_waiting

    def declare(self, *declarations: bytes) -> None:
        """One transaction; an event `declared` tells what became of it."""
        for one in declarations:
            if 2 + self._width + len(one) > self._mtu:
                raise ValueError(f"a declaration of {len(one)} bytes does not fit a packet of {self._mtu}")
        self._declaring.extend(declarations)
        self._commit = self._commit + 1 & 255
        self._declaring.append(bytes([COMMIT, self._commit]))

    def put(self, id: int, payload: bytes, now: float, *, reliable: bool = True, prid: "int | None" = None) -> bool:
        """Send a sample of a published id; False if nobody listens or the window is full, and nothing is sent."""
        if id not in self.wanted:
            return False
        fixed = vle(id) + (b"" if prid is None else vle(prid))
        return self._data(STREAM | (0 if prid is None else BIT7), fixed, fixed, payload, now, reliable)

    def write(self, name: bytes, payload: bytes, now: float, *, reliable: bool = True) -> bool:
        """Send a sample by name; False if the window is full."""
        return self._data(WRITE, sized(name), b"\0", payload, now, reliable)

    def pull(self, id: int, now: float, most: "int | None" = None, *, final: bool = False, pull_id: int = 1) -> bool:
        """Ask for samples of a subscriber or selection; `final` without `most` cancels (2018), `pull_id` is 2017's."""
        if not self._has_room(1):
            return False
        rest = vle(id) + (vle(pull_id) if self.is_2017 else b"") + (b"" if most is None else vle(most))
        header = PULL | (0 if most is None else BIT6) | (BIT7 if final and not self.is_2017 else 0)
        self._number(header | SYNC, rest, now)
        return True

    # -- packets out ---------------------------------------------------------------------------------------------------

    def poll(self, now: float) -> "list[bytes]":
        """The packets that are due now; call it after everything else, and when `deadline` has come."""
        self._on_time(now)
        if self.state == OPEN:
            self._send_declarations(now)
        if self._answering and self.state in (OPEN, CLOSING):
            self._answering = False
            self._say(self._acknack())
        packets: list[bytes] = []
        packet = b""
        for message in self._out:
            if packet and len(packet) + len(message) > self._mtu:
                packets.append(packet)
                packet = b""
            packet += message
        if packet:
            packets.append(packet)
            self._said = now
        self._out = []
        return [sized(one) for one in packets] if self._streamed else packets

    def deadline(self) -> float:
        """When `poll` has something to do by itself."""
        due = 1e9 + self._said
        if self.state == OPENING:
            due = self._asked + RETRY_SECONDS
        elif self.state == CLOSING:
            due = self._asked + FAREWELL_SECONDS
        elif self.state == OPEN:
            if self._lease:
                due = self._said + self._lease / 30
            if self._peer_lease:
                due = min(due, self._heard + self._peer_lease / 10)
            if self._held:
                due = min(due, self._synched + self._period())
        return due

    def _on_time(self, now: float) -> None:
        if self.state == OPENING and now >= self._asked + RETRY_SECONDS:
            if self._tries > OPEN_RETRIES:
                self._over(255)
            else:
                self._say_open(now)
        elif self.state == CLOSING and now >= self._asked + FAREWELL_SECONDS:
            self._over(0)
        elif self.state == OPEN:
            if self._peer_lease and now >= self._heard + self._peer_lease / 10:
                self._refuse(0)
                return
            if self._held and now >= self._synched + self._period():
                self._unheard += 1
                if self._unheard > GIVEN_UP:
                    self._refuse(255)
                    return
                self._synch(now)
                if now >= self._pinged + PING_SECONDS:
                    self._pinged = now
                    self._say(bytes([PING]) + vle(self._next[1] & 0x3FFF))
            if self._lease and now >= self._said + self._lease / 30 and not self._out:
                self._say(bytes([KEEP_ALIVE]) + sized(self._pid))

    def _say(self, message: bytes) -> None:
        self._out.append(message)

    def _say_open(self, now: float) -> None:
        self._tries += 1
        self._asked = self._heard = self._said = now
        bits = b"" if self._bits == 14 else b"\x01\x04" + sized(vle(self._bits))
        header = OPEN_ID | (BIT5 if bits else 0)
        self._say(bytes([header, 1]) + sized(self._pid) + vle(self._lease) + b"\0" + bits)

    def _send_declarations(self, now: float) -> None:
        """As many as fit a Declare; the next transaction when this one is answered (commit mode 0, Z18-DCL-12)."""
        while self._results and self._has_room(1):
            self._number(DECLARE | SYNC, b"\x01" + self._results.pop(0), now)
        room = self._mtu - 2 - self._width
        while self._declaring and not self._is_waiting and self._has_room(1):
            count = size = 0
            while count < min(len(self._declaring), 127) and not self._is_waiting:
                size += len(self._declaring[count])
                if size > room:
                    break
                self._is_waiting = self._declaring[count][0] == COMMIT
                count += 1
            self._number(DECLARE | SYNC, bytes([count]) + b"".join(self._declaring[:count]), now)
            self._declaring = self._declaring[count:]

    def _has_room(self, count: int) -> bool:
        return self.state == OPEN and len(self._held) + count <= self._window

    def _data(self, header: int, first: bytes, later: bytes, payload: bytes, now: float, reliable: bool) -> bool:
        """A sample, in fragments if it is larger than a packet (§5.13)."""
        channel = 1 if reliable else 0
        header |= RELIABLE if reliable else 0
        room = self._mtu - 1 - self._width - len(first)
        if len(payload) + len(vle(len(payload))) <= room:
            if self.state != OPEN or (reliable and not self._has_room(1)):
                return False
            self._number(header | (SYNC if reliable else 0), first + sized(payload), now, channel)
            return True
        room -= 2 + self._width
        room -= len(vle(max(room, 0)))
        count = -(-len(payload) // room) if room > 0 else 0
        if not 1 < count < 128 or count > self._window:
            raise ValueError(f"{len(payload)} bytes do not fit {self._window} packets of {self._mtu}")
        if self.state != OPEN or (reliable and not self._has_room(count)):
            return False
        mark = bytes([FRAG | BIT6]) + vle(self._next[channel]) + bytes([count])
        for index in range(count):
            piece = payload[index * room : (index + 1) * room]
            sync = SYNC if reliable and index == count - 1 else 0
            self._number(header | sync, (later if index else first) + sized(piece), now, channel, mark)
        return True

    # -- packets in ----------------------------------------------------------------------------------------------------

    def receive(self, data: bytes, now: float) -> "list[Event]":
        """Take a datagram, or bytes of a stream; what happened."""
        try:
            if self._streamed:
                self._take_stream(data, now)
            else:
                self._packet(data, now)
        except (Broken, IndexError) as error:
            if self.state in (OPEN, CLOSING):
                self._refuse(error.reason if isinstance(error, Broken) else 255)
            else:
                self.dropped += 1
                self._stream = b""
        return self.taken()

    def taken(self) -> "list[Event]":
        """What happened since this was asked last."""
        found, self._events = self._events, []
        return found

    def _take_stream(self, data: bytes, now: float) -> None:
        self._stream += data
        while self._stream:
            try:
                size, at = read_vle(self._stream, 0)
            except IndexError:
                return
            if not 0 < size <= self._largest + 64:  # 0 would make it unbounded, which nobody need be able to take
                raise Broken
            if len(self._stream) < at + size:
                return
            packet, self._stream = self._stream[at : at + size], self._stream[at + size :]
            self._packet(packet, now)

    def _packet(self, packet: bytes, now: float) -> None:
        at = 0
        while at < len(packet):
            at = self._message(packet, at, now)
            self._heard = now

    def _message(self, buf: bytes, at: int, now: float) -> int:
        frag = space = 0
        header = buf[at]
        kind = header & 31
        rank = 0
        while kind in (CONDUIT, FRAG) or (kind == RSPACE and not self.is_2017):
            here = (CONDUIT, FRAG, RSPACE).index(kind) + 1
            if here <= rank:
                raise Broken
            rank = here
            if kind == FRAG:
                frag = at + 1  # read again when it is the message's turn
                _, at = read_vle(buf, at + 1)
                if header & BIT6:
                    _, at = read_vle(buf, at)
            else:
                id = 1 + (header >> 5 & 3)
                at += 1
                if not header & BIT7:
                    id, at = read_vle(buf, at)
                if kind == CONDUIT and id:
                    raise Broken
                space = id if kind == RSPACE else space
            header = buf[at]
            kind = header & 31
        if frag and kind not in (STREAM, WRITE):
            raise Broken
        if rank == 3 and kind not in NUMBERED:
            raise Broken
        if kind in NUMBERED:
            sn, end = self._end_of(kind, header, buf, at)
            if self.state in (OPEN, CLOSING):
                self._check_number(sn)
                start = frag - 1 if frag else at
                # Of another resource space: it has its turn, and nothing is left of it.
                message = b"" if space else bytes(buf[start:end])
                channel = 1 if kind == DECLARE or header & RELIABLE else 0
                self._arrive(sn, channel, bool(header & SYNC), message, at - start)
            else:
                self.dropped += 1
            return end
        return self._control(kind, header, buf, at + 1, now)

    def _control(self, kind: int, header: int, buf: bytes, at: int, now: float) -> int:
        """Everything that has no number."""
        if kind == ACCEPT:
            to, at = read_sized(buf, at)
            _, at = read_sized(buf, at)
            lease, at = read_vle(buf, at)
            bits, at = self._properties(header, buf, at)
            self._on_accept(to, lease, bits, now)
        elif kind == CLOSE:
            _, at = read_sized(buf, at)
            self._on_close(buf[at])
            at += 1
        elif kind == SYNCH:
            sn, at = read_vle(buf, at)
            count = 0
            if header & BIT7:
                count, at = read_vle(buf, at)
            if self._is_talking(sn):
                if header & BIT7 and not (header & RELIABLE and 0 < count < self._half - 1):
                    self.dropped += 1  # Z18-REL-08
                else:
                    self._on_synch(1 if header & RELIABLE else 0, bool(header & SYNC), sn, count)
        elif kind == ACK_NACK:
            sn, at = read_vle(buf, at)
            mask = -1
            if header & BIT5:
                mask, at = read_vle(buf, at)
            if self._is_talking(sn):
                self._on_acknack(sn, mask, now)
        elif kind == PING or (kind == PONG and self.is_2017):
            hash, at = read_vle(buf, at)
            if kind == PONG or (not self.is_2017 and header & BIT5):
                self._trip = max(0.01, min(1.0, now - self._pinged)) if self._pinged else self._trip
            else:
                self._say(bytes([PONG if self.is_2017 else PING | BIT5]) + vle(hash))
        elif kind == KEEP_ALIVE:
            _, at = read_sized(buf, at)
        elif kind == HELLO:
            _, at = read_vle(buf, at)
            count, at = read_vle(buf, at)
            for _ in range(count):
                _, at = read_sized(buf, at)
            _, at = self._properties(header, buf, at)
        else:  # Scout, Open and Migrate are not for a client; the rest is reserved or unknown
            raise Broken
        return at

    def _is_talking(self, sn: int) -> bool:
        if self.state not in (OPEN, CLOSING):
            self.dropped += 1
            return False
        self._check_number(sn)
        return True

    def _properties(self, header: int, buf: bytes, at: int) -> "tuple[int, int]":
        """The length of numbers among them, or ours, and where they end."""
        bits = self._bits
        if header & BIT5:
            count, at = read_vle(buf, at)
            for _ in range(count):
                id, at = read_vle(buf, at)
                value, at = read_sized(buf, at)
                if id == 4:
                    bits, _ = read_vle(value, 0)
        return bits, at

    def _end_of(self, kind: int, header: int, buf: bytes, at: int) -> "tuple[int, int]":
        """The number of a message, and where it ends."""
        sn, at = read_vle(buf, at + 1)
        if kind == WRITE:
            _, at = read_sized(buf, at)
            _, at = read_sized(buf, at)
            return sn, at
        count, at = read_vle(buf, at)  # of declarations; else it is the id
        if kind == DECLARE:
            for _ in range(count):
                at = self._declaration(buf, at, False)
            return sn, at
        if kind == PULL:
            raise Broken  # nobody can pull from a client that keeps nothing
        count = 1
        if kind == BATCHED:
            count, at = read_vle(buf, at)
        for _ in range(count):
            if header & BIT7:
                _, at = read_vle(buf, at)
            _, at = read_sized(buf, at)
        return sn, at

    # -- sessions ------------------------------------------------------------------------------------------------------

    def _on_accept(self, to: bytes, lease: int, bits: int, now: float) -> None:
        if self.state != OPENING or to != self._pid:
            self.dropped += 1
            return
        self.state = OPEN
        self._peer_lease = lease
        self._tries = 0
        if bits != self._bits:
            raise Broken(4)
        self._events.append(Event("opened"))

    def _on_close(self, reason: int) -> None:
        if self.state == OPEN:
            self._say(bytes([CLOSE]) + sized(self._pid) + b"\0")
        if self.state != CLOSED:
            self._over(reason)

    def _refuse(self, reason: int) -> None:
        self._say(bytes([CLOSE]) + sized(self._pid) + bytes([reason]))
        self._over(reason)

    def _over(self, reason: int) -> None:
        self.state = CLOSED
        self.reason = reason
        self._start()
        self._events.append(Event("closed", status=reason))

    # -- deliveries (§5.11 to §5.13) -----------------------------------------------------------------------------------

    def _deliver(self, message: bytes, header: int, sn: int, channel: int) -> None:
        if not message:
            self.dropped += 1
            return
        flags = message[header]
        kind = flags & 31
        _, at = read_vle(message, header + 1)
        if not header:
            self._finish(channel)
        if kind == DECLARE:
            self._on_declare(message, at)
            return
        id, prid, name = 0, -1, b""
        if kind == WRITE:
            name, at = read_sized(message, at)
        else:
            id, at = read_vle(message, at)
        count = 1
        if kind == BATCHED:
            count, at = read_vle(message, at)
        for _ in range(count):
            if flags & BIT7 and kind != WRITE:
                prid, at = read_vle(message, at)
            payload, at = read_sized(message, at)
            if header:
                self._fragment(message, sn, channel, id, prid, name, payload)
            else:
                self._sample(id, prid, name, payload)

    def _sample(self, id: int, prid: int, name: bytes, payload: bytes) -> None:
        if prid == 0 and not self.is_2017:
            self._events.append(Event("end", id))
        else:
            self._events.append(Event("sample", id, max(prid, 0), name, payload))

    def _fragment(self, message: bytes, sn: int, channel: int, id: int, prid: int, name: bytes, payload: bytes) -> None:
        base, at = read_vle(message, 1)
        count = read_vle(message, at)[0] if message[0] & BIT6 else 0
        index = (sn - base) % self._circle
        series = self._series[channel]
        if series is not None and series.base != base:
            self._finish(channel)
            series = None
        if series is None:
            if index and not channel:
                self.dropped += 1  # its beginning was lost
                return
            series = self._series[channel] = Series(base, count, id, prid, name)
        series.count = series.count or count
        is_wrong = index != series.got or (count and count != series.count) or (message[0] & BIT6 and count < 2)
        if is_wrong or len(series.payload) + len(payload) > self._largest:
            self._give_up(channel)
            return
        series.got += 1
        series.payload += payload
        if series.count == series.got:
            self._finish(channel)

    def _finish(self, channel: int) -> None:
        """The series of fragments ends here: whole, or, if nobody has said how many, by what comes behind it."""
        series = self._series[channel]
        if series is None:
            return
        if series.count and series.count != series.got:
            self._give_up(channel)
            return
        self._series[channel] = None
        self._sample(series.id, series.prid, series.name, series.payload)

    def _give_up(self, channel: int) -> None:
        """A series that cannot be: Z18-FRG-03."""
        self._gap(channel)
        if channel:
            raise Broken

    def _gap(self, channel: int) -> None:
        if self._series[channel] is not None:
            self._series[channel] = None
            self.dropped += 1

    # -- declarations of the other node --------------------------------------------------------------------------------

    def _on_declare(self, message: bytes, at: int) -> None:
        count, at = read_vle(message, at)
        for _ in range(count):
            # Whatever is declared is taken, so a commit has nothing to undo (Z18-DCL-02, 03).
            if message[at] & 31 == COMMIT:
                if len(self._results) >= self._window:
                    raise Broken
                self._results.append(bytes([RESULT, message[at + 1], 0]))
            at = self._declaration(message, at, True)

    def _declaration(self, buf: bytes, at: int, is_taken: bool) -> int:
        """Where a declaration ends; if it is taken, what it says holds."""
        header = buf[at]
        kind = header & 31
        at += 1
        if kind in (COMMIT, RESULT):
            commit = buf[at]
            at += 1
            if kind == RESULT:
                status, id = buf[at], 0
                at += 1
                if status:
                    id, at = read_vle(buf, at)
                if status == 255 and not self.is_2017:
                    raise Broken
                if is_taken and self._is_waiting and commit == self._commit_answered():
                    self._is_waiting = False
                    self._events.append(Event("declared", id, status=status))
            return at
        id, at = read_vle(buf, at)
        if kind in (RESOURCE, SELECTION):
            name, at = read_sized(buf, at)
            if is_taken and kind == RESOURCE:
                self._events.append(Event("resource", id, name=name))
        elif kind == SUBSCRIBER:
            mode, at = read_vle(buf, at)
            if not 1 <= mode <= 4:
                raise Broken
            for _ in range(3 if mode > 2 else 0):
                _, at = read_vle(buf, at)
        elif kind == BINDING:
            _, at = read_vle(buf, at)
        elif not (kind == PUBLISHER or FORGET <= kind <= 11):
            raise Broken
        if kind <= SELECTION and header & BIT5:
            _, at = self._properties(header, buf, at)
        if is_taken and kind == SUBSCRIBER and id not in self.wanted and len(self.wanted) < WANTED:
            self.wanted.append(id)
        elif is_taken and kind == FORGET_SUBSCRIBER and id in self.wanted:
            self.wanted.remove(id)
        return at

    def _commit_answered(self) -> int:
        """The commit whose result is waited for: those after it are still in the queue."""
        later = sum(1 for one in self._declaring if one[0] == COMMIT)
        return (self._commit - later) & 255
