"""Every bound Elea puts on what others may make it do: one named constant each, with its reason."""

from __future__ import annotations

from typing import Final

__all__ = [
    "ACCEPT_CROWD",
    "ACCEPT_PENDING",
    "ACKNACK_SPAN",
    "ARROW_BATCHES",
    "ARROW_DEPTH",
    "ARROW_FIELDS",
    "ARROW_HEAD_BYTES",
    "ARROW_NAME_BYTES",
    "BLOCKED_PART",
    "CACHED_KEY_CHARS",
    "CACHED_ROUTES",
    "CAPTURE_BLOCK_BYTES",
    "CAPTURE_FRAGMENT_BYTES",
    "CAPTURE_HELD_BYTES",
    "CAPTURE_HELD_TOTAL",
    "CAPTURE_INTERFACES",
    "CAPTURE_KEYS",
    "CAPTURE_PACKET_BYTES",
    "CLI_UNIT_BYTES",
    "CLOCK_DRIFT_NS",
    "CLOCK_MARGIN_NS",
    "CONTENT_BYTES",
    "CONTENT_DEPTH",
    "CONTENT_RECORDS",
    "CONTROL_BATCHES",
    "DEFAULT_CAPACITY",
    "DOLLAR_WEIGHT",
    "DURATION_NS",
    "EARLY_AHEAD",
    "EARLY_AHEAD_BYTES",
    "EARLY_DECLARED",
    "EARLY_DECLARED_OCTETS",
    "EARLY_HELD_WINDOWS",
    "EARLY_LATE_PACKETS",
    "EARLY_LENT",
    "EARLY_LINKS",
    "EARLY_MESSAGE",
    "EARLY_PENDING",
    "EARLY_PULLS",
    "EARLY_SNAPSHOT_BYTES",
    "EARLY_SPACES",
    "EARLY_STREAM_WINDOW_BYTES",
    "EARLY_TAGS",
    "EARLY_TAGS_OCTETS",
    "EARLY_WINDOW",
    "EARLY_WINDOW_BYTES",
    "EMPTY_ELEMENTS",
    "ENCODING_SCHEMA_BYTES",
    "FILTERS_REMEMBERED",
    "FILTER_BYTES",
    "FILTER_WEIGHT",
    "GUESSES_FREE",
    "GUESS_SOURCES",
    "HELD_OCTETS",
    "INCLUSION_SETS",
    "INTEREST_TIMEOUT",
    "KEY_EXPR_BYTES",
    "KEY_EXPR_CHUNKS",
    "KEY_EXPR_WILDCARDS",
    "LEASE_LEAST",
    "LEASE_MOST",
    "MAILBOX",
    "MAILBOX_BYTES",
    "MAX_BATCH",
    "MAX_DECLARATIONS",
    "MAX_DECLARED_ID",
    "MAX_DENIED",
    "MAX_DEPTH",
    "MAX_EXTENSIONS",
    "MAX_HEADERS",
    "MAX_INTERESTS",
    "MAX_KEY_OCTETS",
    "MAX_LOCATORS",
    "MAX_MEETINGS",
    "MAX_MESSAGE",
    "MAX_NODES",
    "MAX_NUMBERS",
    "MAX_OCTETS",
    "MAX_PACKET",
    "MAX_PLANS",
    "MAX_PUT_ROUTES",
    "MAX_QUERIES",
    "MAX_REMEMBERED",
    "MAX_RESOURCE_OCTETS",
    "MAX_ROUTES",
    "MAX_STACK_RECORDS",
    "MAX_WILDCARDS",
    "MCAP_CHANNELS",
    "MCAP_CHUNK_BYTES",
    "MCAP_CHUNK_RECORDS",
    "MCAP_CHUNK_ROWS",
    "MCAP_DETAILS_KEPT",
    "MCAP_SAMPLES",
    "MCAP_SUMMARY_BYTES",
    "MEMORY_BUDGET",
    "MEMORY_BYTES",
    "MEMORY_PENDING",
    "MIN_BATCH",
    "NATURAL_BITS",
    "NODE_ID_BYTES",
    "PACED_OCTETS",
    "PACED_SAMPLES",
    "PATIENCE",
    "PLOT_LINES",
    "PLOT_POINTS",
    "PREDICATES_DECLARED",
    "PREDICATE_CHARS",
    "PREDICATE_DEPTH",
    "PREDICATE_INDEX",
    "PREDICATE_PATH",
    "PREDICATE_PATTERN",
    "PREDICATE_TERMS",
    "PROTOBUF_DEPTH",
    "PUTS_BYTES",
    "PUTS_SAMPLES",
    "QUERY_TIMEOUT",
    "QUEUE_BYTES",
    "QUEUE_LEAST",
    "REASSEMBLY_BYTES",
    "RESCAN_BYTES",
    "RESOURCE_BYTES",
    "RESOURCE_PATTERN_CHARS",
    "SCHEMAS_BYTES",
    "SCHEMAS_KNOWN",
    "SCHEMA_BYTES",
    "SCHEMA_DEPTH",
    "SCHEMA_ELEMENTS",
    "SCHEMA_MEMBERS",
    "SN_BITS_MAX",
    "SN_BITS_MIN",
    "STORE_ALIGN_BUCKETS",
    "STORE_ALIGN_BYTES",
    "STORE_ALIGN_ROWS",
    "STORE_BATCH_PARTS",
    "STORE_BATCH_ROWS",
    "STORE_BLOCK_BYTES",
    "STORE_BLOCK_ROWS",
    "STORE_CACHED_BLOCKS",
    "STORE_CACHED_BYTES",
    "STORE_CURSORS",
    "STORE_CURSORS_OF_USER",
    "STORE_CURSOR_CHARS",
    "STORE_DIGEST_ROWS",
    "STORE_FRAME_HEAD_BYTES",
    "STORE_KEYED_BYTES",
    "STORE_PENDING_BYTES",
    "STORE_SEGMENT_BYTES",
    "STORE_SOURCES",
    "STORE_SOURCE_RUNS",
    "STORE_STAGED_BYTES",
    "STORE_STAGED_OF_USER",
    "STORE_STAGED_SECONDS",
    "STORE_WRITERS",
    "STORE_WRITERS_OF_USER",
    "TCP_FLOWS",
    "TCP_PENDING_BYTES",
    "TCP_PENDING_TOTAL",
    "TCP_STRAY_BYTES",
    "TIME_EXPR_CHARS",
    "UATTRIBUTES_BYTES",
    "UATTRIBUTES_REMEMBERED",
    "UATTRIBUTES_REMEMBERED_BYTES",
    "UAUTHORITY_CHARS",
    "UDP_ENDPOINTS",
    "UDP_QUEUE",
    "UDP_SOURCES",
    "UPROTOCOL_CALLS",
    "UPROTOCOL_KEYS",
    "UPROTOCOL_KEYS_PER_MESSAGE",
    "UPROTOCOL_LISTENERS",
    "UPROTOCOL_LISTENERS_PER_FILTER",
    "UPROTOCOL_PENDING",
    "UPROTOCOL_RECEIVED",
    "UPROTOCOL_SUBSCRIPTIONS",
    "UPROTOCOL_TOPICS",
    "UREQUEST_BYTES",
    "UTWIN_BYTES",
    "UURI_CHARS",
    "WORKERS",
]

NATURAL_BITS: Final = 64
"""Numbers on the wire; the papers leave them unbounded (decision DEC-03)."""

NODE_ID_BYTES: Final = 16
"""A node identifier has 1 to 16 bytes in all dialects."""

MAX_BATCH: Final = 65_535
"""Zenoh 1.x: the length prefix of a batch is 16 bits wide."""

MAX_PACKET: Final = 65_535
"""Early dialects: default MTU of a stream link; a larger frame ends the session (Z18-FRM-04)."""

MAX_MESSAGE: Final = 1 << 30
"""A reassembled message; the default of eclipse-zenoh (`max_message_size`)."""

KEY_EXPR_BYTES: Final = 65_535
"""A key expression travels with a 16-bit length."""

KEY_EXPR_CHUNKS: Final = 128
"""Chunks of a key expression. eclipse-zenoh takes any number; keys of real programs have a dozen, paths of files 30.
What is matched costs time for each of them.
"""

KEY_EXPR_WILDCARDS: Final = 32
"""`*`, `**` and `$*` of a key expression. eclipse-zenoh takes any number, but its own matching does not end in useful
time with more than ten `**`; real programs write up to four.
"""

CAPTURE_BLOCK_BYTES: Final = 1 << 24
"""A pcapng block read whole; only comments and secrets make a block large, and those are passed over."""

CAPTURE_FRAGMENT_BYTES: Final = 1 << 27
"""Fragments of all connections of a capture held until their messages are whole."""

CAPTURE_HELD_BYTES: Final = 1 << 20
"""Bytes of a captured connection held until its dialect is known; any first message is far shorter."""

CAPTURE_HELD_TOTAL: Final = 1 << 26
"""The same over all connections of a capture."""

CAPTURE_INTERFACES: Final = 4_096
"""Interfaces of one pcapng section; each is remembered until the section ends."""

CAPTURE_KEYS: Final = 100_000
"""Keys remembered of what one side of a captured connection has declared; later ones are not resolved."""

CAPTURE_PACKET_BYTES: Final = 262_144
"""One captured packet; the largest snap length libpcap accepts."""

CLI_UNIT_BYTES: Final = 1 << 26
"""One unit given to `elea decode` or `elea encode` as raw bytes or as a line; far above any batch."""

TCP_FLOWS: Final = 16_384
"""Directions of TCP connections followed at once in a capture; the longest idle one gives way."""

TCP_PENDING_BYTES: Final = 1 << 22
"""Bytes of one direction held while an earlier segment is missing; then the hole is a gap."""

TCP_PENDING_TOTAL: Final = 1 << 27
"""The same over all directions of a capture."""

TCP_STRAY_BYTES: Final = 1 << 30
"""A segment further than the largest TCP window from its stream cannot belong to it."""

UDP_ENDPOINTS: Final = 4_096
"""Addresses remembered as having scouted in a capture, so that the answers are known for what they are."""

ENCODING_SCHEMA_BYTES: Final = 255
"""Zenoh 1.x: a schema travels with an 8-bit length; eclipse-zenoh 1.10.2 breaks its link on a longer one."""

CLOCK_DRIFT_NS: Final = 500_000_000
"""A timestamp further ahead of local time than this does not move the clock; the default of eclipse-zenoh."""

CLOCK_MARGIN_NS: Final = 2 * CLOCK_DRIFT_NS
"""A stored timestamp further ahead of its arrival than this is not believed: twice the drift, since the time of an
arrival is taken before its timestamp is judged or given."""

SN_BITS_MIN: Final = 4
"""Early dialects: the shortest serial number; its window is 6 messages (Z18-SES-06)."""

SN_BITS_MAX: Final = 63
"""Early dialects: the longest serial number; one bit below the naturals that carry it (Z18-SES-06)."""

ACKNACK_SPAN: Final = 65
"""Early dialects: serial numbers one AckNack can ask for: its own and 64 of the mask (DEC-03)."""

EARLY_WINDOW: Final = 2_048
"""Early dialects: messages of a reliable channel that wait for an acknowledgement; more makes nothing faster."""

EARLY_WINDOW_BYTES: Final = 1 << 17
"""Bytes of them. A burst of so many fits the receive buffer that Linux gives a UDP socket unless told otherwise."""

EARLY_HELD_WINDOWS: Final = 8
"""How many windows of bytes a sender keeps until they are acknowledged: what has arrived behind something lost, too."""

EARLY_STREAM_WINDOW_BYTES: Final = 1 << 21
"""The same on links that lose nothing by themselves, where no buffer can run over and more is faster."""

EARLY_AHEAD: Final = 16_384
"""Messages kept that came before one that is missing; the largest window of numbers of 14 bits is half of it."""

EARLY_AHEAD_BYTES: Final = 1 << 23
"""Bytes of them; what has no room is asked for again."""

EARLY_MESSAGE: Final = 1 << 24
"""A message put together from fragments (Z18-FRG-05)."""

EARLY_PENDING: Final = 4_096
"""Declarations of one session that wait for their commit (Z18-DCL-19)."""

EARLY_DECLARED: Final = 10_000
"""Resources, selections, publishers and subscribers of one early session, of each kind; above it, status 1."""

EARLY_DECLARED_OCTETS: Final = 1 << 24
"""Bytes of names and properties of what one early session has declared, or wants to and has not committed."""

EARLY_PULLS: Final = 64
"""Pulls of one session from the store that are under way at the same time."""

EARLY_SPACES: Final = 256
"""Resource spaces that one session declares something in; above it, status 1."""

EARLY_TAGS: Final = 100_000
"""Resources whose tags and properties a node remembers for the early dialects; the oldest gives way."""

EARLY_TAGS_OCTETS: Final = 1 << 25
"""Bytes of their keys, tags and properties."""

EARLY_LENT: Final = 8_192
"""Resources that a broker gives ids to in one early session, so that pulled samples can name them; then by name."""

EARLY_LINKS: Final = 4
"""Links of one early session; what asks to be one more is dropped, and says so again when another is gone."""

EARLY_LATE_PACKETS: Final = 64
"""Packets of other links that wait while one of the same session is looked at; what is reliable comes again."""

EARLY_SNAPSHOT_BYTES: Final = 1 << 24
"""Bytes of stored samples that wait to be pulled, or sent to a durable subscriber, by one session."""

MAX_DECLARED_ID: Final = (1 << 63) - 1
"""Early dialects: the largest id of a resource or selection (Z18-DCL-07)."""

MAX_EXTENSIONS: Final = 64
"""Unknown extensions kept of one message; real messages carry a handful, a chain of 65,000 would be an attack."""

RESOURCE_BYTES: Final = 65_535
"""A resource or selection of the early dialects; the same room as a key expression."""

RESOURCE_PATTERN_CHARS: Final = 1_024
"""The path of a resource with wildcards, which work on characters: to meet another of n characters costs n times that,
64 at a time. Real ones have some ten characters, and a path without wildcards may be as long as a resource.
"""

INCLUSION_SETS: Final = 4_096
"""Sets of places an exact inclusion may look at: patterns can be written that need exponentially many."""

TIME_EXPR_CHARS: Final = 64
"""One bound of a time range; the longest useful one has 30 characters."""

DURATION_NS: Final = (1 << 63) - 1
"""A duration in a time range: 292 years, as much as 64 bits of nanoseconds hold."""

RESCAN_BYTES: Final = 1 << 22
"""Bytes of one message read again because its stream came in crumbs (unbounded streams of the early dialects)."""

MAX_NUMBERS: Final = 60_000
"""Keys a node gives numbers to; a number on the wire has 16 bits, and later keys travel literally."""

MAX_DECLARATIONS: Final = 250_000
"""Subscribers, queryables and tokens of one session. Each costs a node about 1 kB; real programs have thousands."""

MAX_INTERESTS: Final = 250_000
"""Interests of one session: its publishers, queriers and whoever watches. Each costs a node about 1 kB."""

MAX_DENIED: Final = 1_000
"""Declarations of one session that rules deny and that are taken when the rules change; others are declared anew."""

MAX_KEY_OCTETS: Final = 1 << 26
"""Bytes of the keys of all these together: a key may have 64 KiB, and a quarter million of those would be 16 GB."""

MAX_WILDCARDS: Final = 32_768
"""Wildcards in all these keys together: those that may stand for the same chunk are all looked at for each new key,
about 0.5 µs each. One session can thus make a look-up of others cost 20 ms, if it writes them to that end.
"""

DOLLAR_WEIGHT: Final = 16
"""How many wildcards a `$*` counts for in `MAX_WILDCARDS`: it is compared with each chunk that may be meant."""

MAX_RESOURCE_OCTETS: Final = 1 << 26
"""Bytes of the key expressions one session gives numbers to; there are 65,535 numbers, enough for 4 GB of text."""

MAX_QUERIES: Final = 65_536
"""Queries of one session that wait for answers at once. Each costs a node about 2 kB until it ends or times out."""

STORE_SEGMENT_BYTES: Final = 64 << 20
"""A segment of the store; the next sample then opens a new one. Retention takes away whole segments."""

ARROW_HEAD_BYTES: Final = 1 << 20
"""The metadata of one Arrow message from outside; that of samples has 2 kB, that of a table of 1,000 columns 200 kB."""

ARROW_BATCHES: Final = 65_536
"""Batches of one Arrow stream from outside. An answer of 8 MiB has some thousands if every sample is one of its own."""

ARROW_NAME_BYTES: Final = 1_024
"""The name of a column, and of a timezone, in a schema from outside; Spark and SQL engines allow some hundred."""

ARROW_FIELDS: Final = 2_048
"""Columns of an Arrow payload, those within others included; a sample is one row of them."""

ARROW_DEPTH: Final = 32
"""Columns within columns of an Arrow payload; nobody nests deeper, and Arrow reads them by recursion."""

STORE_BATCH_ROWS: Final = 262_144
"""Samples of one batch or staged piece. Our clients send a quarter of it; a sample of nothing takes 8 bytes there, and
some 200 when its other columns are made."""

STORE_BATCH_PARTS: Final = 1_024
"""Arrow batches of the same; our clients send one. Each costs some kilobytes, even if it is empty."""

STORE_BLOCK_ROWS: Final = 16_384
"""Samples of one block; larger batches are cut. Scans gain nothing beyond, and a lost block loses less."""

STORE_BLOCK_BYTES: Final = 8 << 20
"""Bytes of one block, if it has more than one sample."""

STORE_FRAME_HEAD_BYTES: Final = 1 << 20
"""The part of a frame before its columns; a real one has 2 kB, a damaged length could ask for anything."""

STORE_CACHED_BLOCKS: Final = 32
"""Blocks kept decoded per log, so that reading keys one by one does not check the same block each time."""

STORE_CACHED_BYTES: Final = 16 << 20
"""Bytes of them, however few blocks that are: a walk over all keys would else leave its traces."""

STORE_KEYED_BYTES: Final = 64 << 20
"""What a log remembers of which keys are in which of its blocks, besides the segment that grows: 8 bytes for a key of a
block. Above it the segments asked for longest ago are forgotten, and read again when a key is looked for there."""

STORE_PENDING_BYTES: Final = 64 << 20
"""Samples waiting for the disk; more are refused as congestion, so that a slow disk cannot fill the memory."""

STORE_SOURCES: Final = 100_000
"""Sources whose numbers a log remembers to store a retry once; the longest silent one is forgotten first."""

STORE_SOURCE_RUNS: Final = 1_024
"""Runs of consecutive numbers remembered per source; numbers below them count as stored."""

PUTS_SAMPLES: Final = 1_024
"""Acknowledged samples of one request (`@store/puts`): twice what one writer has in flight."""

PUTS_BYTES: Final = 1 << 20
"""Bytes after which a writer begins the next such request; one sample alone may have more."""

STORE_DIGEST_ROWS: Final = 262_144
"""Samples whose fingerprints are made at a time: about 50 MB."""

STORE_ALIGN_ROWS: Final = 16_384
"""Samples that are listed in one answer when two logs are compared."""

STORE_ALIGN_BYTES: Final = 8 << 20
"""Bytes of samples that are fetched from another log in one go, or one sample if that is larger."""

STORE_ALIGN_BUCKETS: Final = 256
"""Buckets of time that one request asks about when two logs are compared."""

STORE_CURSORS: Final = 10_000
"""Named cursors of one log."""

STORE_CURSORS_OF_USER: Final = 1_000
"""Those of one user, where users prove who they are: one cannot take the room of all."""

STORE_CURSOR_CHARS: Final = 255
"""The name of a cursor."""

STORE_STAGED_BYTES: Final = 16 << 30
"""Bytes of batches that are staged and not committed, per log; enough for several large ones at a time."""

STORE_STAGED_OF_USER: Final = 4 << 30
"""The same of one user."""

STORE_STAGED_SECONDS: Final = 86_400
"""How long a staged batch waits for its commit: longer than any batch of a stream takes."""

STORE_WRITERS: Final = 10_000
"""Writers of whole batches whose newest batch a log remembers; the longest silent one is forgotten first."""

STORE_WRITERS_OF_USER: Final = 1_000
"""Those of one user; each Spark query is one."""

PACED_SAMPLES: Final = 10_000
"""Samples that wait for a pull or for the next window of one subscription; the oldest gives way (Z18-DAT-09)."""

PACED_OCTETS: Final = 1 << 24
"""Bytes of such samples, where a broker holds them for another node."""

CACHED_ROUTES: Final = 16_384
"""Routes remembered for one source; when there are more they are all worked out again, 3 µs each."""

CACHED_KEY_CHARS: Final = 256
"""Longer keys are routed anew each time: keys of 64 kB in the cache would let others fill our memory."""

QUERY_TIMEOUT: Final = 10.0
"""Seconds a branch may take when the query does not say (`queries_default_timeout` of eclipse-zenoh)."""

INTEREST_TIMEOUT: Final = 10.0
"""Seconds after which a gateway is taken to have answered (`routing.interests.timeout` of eclipse-zenoh)."""

LEASE_LEAST: Final = 1.0
"""Seconds that a neighbour may be silent, at least, whatever it asks for: a busy machine is silent for that long."""

LEASE_MOST: Final = 3_600.0
"""The same at most: a session whose node is gone is held no longer than an hour."""

MAX_NODES: Final = 10_000
"""Nodes remembered. A mesh is full, so no peer lives long among more; beyond it new ones are counted and left out."""

MAX_LOCATORS: Final = 64
"""Locators of one node that are remembered and passed on; a machine with more addresses is reached by the first."""

MAX_MEETINGS: Final = 64
"""Nodes being connected to at once; each is a thread. More are found again, by the next HELLO or gossip."""

MAX_REMEMBERED: Final = 1024
"""Keys, bodies and responders remembered per session; then all are forgotten and found again."""

MAX_OCTETS: Final = 256
"""Longer keys and parameters are decoded anew each time: others must not fill our memory."""

HELD_OCTETS: Final = 48 * 1024
"""Answers held back; then they are written, whoever is still answering."""

UDP_SOURCES: Final = 1_000
"""Source addresses a listener keeps apart at once, as many as sessions by default; others are dropped and counted."""

UDP_QUEUE: Final = 256
"""Datagrams of one source waiting for its reader; more are dropped and counted, as the kernel would."""

ACCEPT_PENDING: Final = 100
"""Handshakes under way at once, of TLS and of sessions: the default of eclipse-zenoh's `accept_pending`. The next one
takes the place of another, whose source has most of them."""

ACCEPT_CROWD: Final = 5
"""How many times as many there may be for a moment: a flood of 2,000 connections a second is then let stand for a
quarter of a second each, in which an honest client among them takes its next step."""

GUESSES_FREE: Final = 5
"""Wrong passwords from one address before answers to it are slowed; a person mistypes it twice."""

GUESS_SOURCES: Final = 10_000
"""Addresses whose wrong passwords are remembered; the one that has been quiet longest gives way."""

MAX_DEPTH: Final = 128
"""Nesting of arrays and objects; the deepest useful configuration has eight levels."""

MAX_PLANS: Final = 256
"""Selectors remembered for the same options; then all are forgotten and worked out again."""

MAX_STACK_RECORDS: Final = 255
"""Timestamps that one message collects on its way: eclipse-zenoh reads no more, and a loop must not let it grow."""

MAX_HEADERS: Final = 1024
"""Sizes of payloads for which the bytes before them are remembered, per key."""

MAX_PUT_ROUTES: Final = 4096
"""Keys that `Session.put` remembers the way of; then all are forgotten and found again."""

DEFAULT_CAPACITY: Final = 256
"""Items held where the user did not say; the same as in eclipse-zenoh."""

MIN_BATCH: Final = 32
"""The smallest batch agreed to: a fragment's prefix and headers take up to 11 bytes and the rest must move data."""

EMPTY_ELEMENTS: Final = 1 << 16
"""Elements of a list that take no bytes, such as empty tuples: nine bytes could ask for any number of them."""

QUEUE_BYTES: Final = 1 << 20
"""Bytes waiting per conduit before the overflow rule applies; eclipse-zenoh allows two batches, 128 KiB.

A Python program hands over in larger gulps: the interpreter may keep the writing thread waiting for 5 ms, in which
a busy publisher makes 1 MB. A message is taken while less than this waits, so one message may stand above the bound.
"""

CONTENT_BYTES: Final = 1 << 22
"""Bytes of a payload that is decoded for a predicate: some 40 ms. A larger one is unknown to every predicate."""

CONTENT_DEPTH: Final = 64
"""Arrays and maps within each other in CBOR that is decoded for a predicate; the reader recurses as deep."""

CONTENT_RECORDS: Final = 1 << 18
"""Structs, texts and lists that are elements of sequences in one CDR payload, members of its structs that may be
absent, and fields of messages in one protobuf payload: a byte or none stands for one that takes 200 in memory."""

SCHEMA_BYTES: Final = 1 << 18
"""Bytes of one schema: a quarter of a second to parse. The largest message of ROS 2's common interfaces needs 20 kB."""

SCHEMA_DEPTH: Final = 32
"""Structs and sequences within each other in a declared type: parsers, readers and columns recurse as deep."""

SCHEMA_MEMBERS: Final = 4_096
"""Members of a declared type with those of all structs within it, written out: n structs of two others each would have
2^n. Generated readers have a line or two for each."""

SCHEMA_ELEMENTS: Final = 1 << 20
"""Elements of an array in a declared type, with all its dimensions."""

SCHEMAS_KNOWN: Final = 4_096
"""Schemas and rules for keys that a node remembers of a data space; later ones are counted and left out."""

SCHEMAS_BYTES: Final = 1 << 25
"""Bytes of all schemas that a node remembers."""

CONTROL_BATCHES: Final = 64
"""Ready-made batches (keep alive, close) waiting at once; when the link is that stuck, more of them help nobody."""

WORKERS: Final = 64
"""Threads that deliver for threads of the user's; the next handler waits for one."""

MAILBOX: Final = 100_000
"""Items that wait for one handler; what comes on top is dropped and counted."""

MAILBOX_BYTES: Final = 1 << 25
"""Bytes that wait for one handler, in samples, queries and replies. What comes on top is dropped and counted, unless
it must not be: then its link is held up while the handler takes something (`Mailbox.wait_for_room`).

An item is taken while less than this waits, so one message may stand above the bound; what carries no payload, such as
the end of a query, is always taken.
"""

MAX_ROUTES: Final = 65_536
"""Names of keys that all 1.x sessions of a node remember together, about 1 kB each; then the session that has most of
them forgets all of its own, which are found again."""

REASSEMBLY_BYTES: Final = 1 << 30
"""Bytes of all messages in the making of one session. There are 16 conduits, and each could hold a largest message;
so there is room for one of those, or for several smaller ones. All sessions together have `MEMORY_BUDGET`.
"""

MEMORY_BUDGET: Final = 1 << 30
"""Bytes of messages in the making and of requests that wait, over all sessions of a node: one largest message. Where
the machine has less than twice as much memory it is half of that (`elea.io.memorybudget`)."""

BLOCKED_PART: Final = 8
"""The part of that budget which may wait for links that take nothing: an eighth, in one conduit of all of them."""

QUEUE_LEAST: Final = 1 << 16
"""Bytes that may wait in a conduit of such a link however many there are: a batch."""

MEMORY_BYTES: Final = 1 << 26
"""Memory that one direction of a link shares with another process; the usual 4 MiB hold 64 payloads of 64 KiB."""

MEMORY_PENDING: Final = 16
"""Memories that were brought and not asked for, and nodes that wait to bring one; the oldest gives way."""

PATIENCE: Final = 5.0
"""Seconds a producer waits for a consumer that takes nothing; half a lease, as for a blocked message on a link."""

FILTER_BYTES: Final = 16_384
"""Bytes of a payload that a node holds against the predicates of its neighbours; they look at a larger one themselves.
It is done by the thread that reads from links, so it has to be quick."""

FILTER_WEIGHT: Final = 1024
"""Terms and characters of patterns of one neighbour's predicates; for heavier ones it gets all samples. Times
`FILTER_BYTES` that is the most steps a sample can take that was made to take long."""

FILTERS_REMEMBERED: Final = 1024
"""Sets of predicates of neighbours that a node remembers compiled; they change with each subscriber."""

PREDICATES_DECLARED: Final = 16
"""Predicates of one neighbour that a sample is held against; where there are more, the neighbour gets all samples."""

PREDICATE_CHARS: Final = 8_192
"""Characters of a predicate, as many as a key expression may have; long lists of constants fit."""

PREDICATE_DEPTH: Final = 32
"""Parentheses and NOTs within each other: the parser and the compilers recurse as deep."""

PREDICATE_TERMS: Final = 256
"""Comparisons, constants of an IN and arguments of functions in one predicate: the work for each sample."""

PREDICATE_PATTERN: Final = 256
"""Characters of a pattern of LIKE or MATCH: matching costs at most this many steps for each character of the text."""

PREDICATE_PATH: Final = 16
"""Names and places in arrays of one field of a predicate."""

PREDICATE_INDEX: Final = 65_535
"""The last place in an array that a predicate can name: columns are cut out up to there."""

PROTOBUF_DEPTH: Final = 100
"""Groups within groups of a protobuf that are skipped; the protobuf libraries stop there too."""

UAUTHORITY_CHARS: Final = 128
"""Characters of the authority of a UUri, as the uProtocol specification has it."""

UURI_CHARS: Final = 512
"""Characters of a UUri as text: an authority, and numbers with leading zeros that nobody needs."""

UATTRIBUTES_BYTES: Final = 1 << 16
"""Bytes of the attributes of a uProtocol message. Two addresses, a token and a trace take a few hundred."""

UATTRIBUTES_REMEMBERED: Final = 4096
"""Attributes without their identifiers that are read or written from memory; then all are forgotten."""

UATTRIBUTES_REMEMBERED_BYTES: Final = 1024
"""Bytes of attributes that are remembered; longer ones are read anew each time."""

UPROTOCOL_KEYS: Final = 4096
"""Pairs of source and sink whose key a uProtocol transport remembers; then all are forgotten and made again."""

UPROTOCOL_KEYS_PER_MESSAGE: Final = 8
"""Keys that attributes are remembered to have come by. There is one, unless senders leave out their authorities."""

UPROTOCOL_LISTENERS: Final = 1000
"""Listeners of one uProtocol transport, unless it is told another number; the public Rust transport has 100."""

UPROTOCOL_LISTENERS_PER_FILTER: Final = 100
"""Listeners with one and the same filter: each message that matches costs a call of all of them."""

UPROTOCOL_RECEIVED: Final = 1000
"""Messages that wait for `receive` with one filter; then the oldest is forgotten and counted."""

UPROTOCOL_PENDING: Final = 10_000
"""Calls of one client that wait for their answers; the next one is refused."""

UPROTOCOL_CALLS: Final = 1000
"""Requests that one server works on or has waiting; the next is answered with RESOURCE_EXHAUSTED."""

UPROTOCOL_SUBSCRIPTIONS: Final = 10_000
"""Subscriptions that a local uSubscription keeps; the next one is refused."""

UPROTOCOL_TOPICS: Final = 256
"""Topics in one request to uTwin; each is a question to the broker."""

UREQUEST_BYTES: Final = 1 << 16
"""Bytes of a request to a core service. 256 topics with the longest authorities take 40,000."""

UTWIN_BYTES: Final = 16 << 20
"""Bytes of the payloads in one answer of uTwin; the topics behind are answered with RESOURCE_EXHAUSTED."""
MERGED_POSITIONS: Final = 200_000
"""Positions of a log in one batch of a pipeline's table with `mode = "merge"`, unless the source's options say another
number: the driver holds the rows of a batch while it merges them."""

MCAP_CHANNELS: Final = 65_535
"""Channels of one MCAP file: their numbers have 16 bits, and 0 is none. Then the recorder begins another file."""

MCAP_SAMPLES: Final = (1 << 32) - 1
"""Samples of one MCAP file: their sequence numbers have 32 bits. Then the recorder begins another file."""

MCAP_SUMMARY_BYTES: Final = 64 << 20
"""What the recorder keeps in memory for the end of an MCAP file: where chunks are. Then it begins another file."""

MCAP_CHUNK_ROWS: Final = 32_768
"""Samples of one chunk that the recorder writes: if each has a channel of its own, a new file has numbers for all."""

MCAP_CHUNK_RECORDS: Final = 1 << 24
"""Records of a chunk that is read. The smallest take 9 bytes, and where each begins takes several times as many in
memory: a chunk that is full of them is refused."""

MCAP_CHUNK_BYTES: Final = (2 << 30) - 1
"""Bytes of a record, or of what a chunk is when it is decompressed: more than the largest sample takes, and as much as
Arrow's offsets can say. A file that promises more is refused before anything is made of it."""

MCAP_DETAILS_KEPT: Final = 64
"""Chunks whose details are remembered while an MCAP file is read. The recorder writes them just before their samples;
a tool that sorts messages may have moved them a little."""

PLOT_LINES: Final = 12
"""Lines of one plot: nobody can tell more of them apart. Values of further keys are counted."""

PLOT_POINTS: Final = 50_000
"""Points of a line that are kept: more than a screen has columns. Of more, least and greatest of neighbours stay."""
