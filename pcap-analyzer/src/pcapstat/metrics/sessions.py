"""The figures of a session: the formulas of Study A (metrics.md), from the sums of the tables sessions, directions, kinds and timings."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar, overload

from pcapstat import _native
from pcapstat.engines import Choice
from pcapstat.errors import UsageError
from pcapstat.metrics.statistics import Times, ratio, seconds, times
from pcapstat.schema import PARTS

LAYERS = {
    "frame": PARTS,
    "ip": PARTS[2:],
    "transport": PARTS[4:],
    "security": PARTS[5:],
    "application": PARTS[5:],
}
"""Which parts each layer counts (metrics.md, "At which layer bytes are counted"): `transport` is the UDP or TCP payload, `security` what is
inside the (D)TLS records, `application` the protocol's own bytes."""

TIME1 = ("application", "security", "transport")
"""Choices of Time1, the default first: it falls back to the next where the capture does not show it."""

Parts = dict[str, int]


@dataclass(frozen=True)
class Choices:
    """What the user chose about figures. Raises UsageError for a name that is none of them.

    `layer` is where bytes are counted: "frame", "ip", "transport" (the UDP or TCP payload), "security" (what is inside the (D)TLS records)
    or "application" (the protocol's own bytes). `time1` is what ΔTime begins with: the first message of the "application", of the
    "security" handshake or of the "transport"; None takes the innermost that the capture shows. `transport_control` counts frames without
    a message (SYN, bare ACK) as overhead.
    """

    layer: str = "frame"
    time1: str | None = None
    transport_control: bool = True

    def __post_init__(self) -> None:
        """Refuse names that are none."""
        if self.layer not in LAYERS:
            raise UsageError(f"layer {self.layer!r}: no layer (there are: {', '.join(LAYERS)})")
        if self.time1 not in (None, *TIME1):
            raise UsageError(f"time1 {self.time1!r}: no Time1 (there are: {', '.join(TIME1)})")


class Kind(NamedTuple):
    """Messages of one kind: how many, their smallest and largest size (own bytes), and their bytes at the chosen layer."""

    direction: str
    kind: str
    messages: int
    bytes_min: int
    bytes_max: int
    layer_bytes: int


class SessionFigures(NamedTuple):
    """Figures of one session. Times in seconds, sizes in bytes at `layer`, rates in bytes per second; None is n/a.

    A moment's seconds since 1970 are more digits than a float holds: `time1_ns` and `time2_ns` are exact.
    """

    session: int
    protocol: str
    version: str | None
    security: str
    client: str
    server: str
    client_identifier: str | None
    receiver: str
    filter: str
    frame_first: int
    frame_last: int
    layer: str
    time1: str | None
    time1_s: float | None
    time1_ns: int | None
    time2: str | None
    time2_s: float | None
    time2_ns: int | None
    delta_time_s: float | None
    data_span_s: float | None
    data_messages: int
    data_bytes: int
    goodput_bytes_per_s: float | None
    throughput_bytes_per_s: float | None
    throughput_all_bytes_per_s: float | None
    session_bytes: int
    control_bytes: int
    control_frames: int
    overhead_bytes: int
    overhead_both_legs_bytes: int | None
    overhead_ratio: float | None
    overhead_by_part_bytes: Parts
    messages: int
    message_rate_per_s: float | None
    retransmissions: int
    tcp_retransmissions: int
    tcp_out_of_order: int
    lost_bytes: int
    captured_twice: int
    link_retransmissions: int
    malformed: int
    field_section_bytes: int
    field_block_bytes: int
    exchanges_complete: int
    exchanges_unanswered: int
    handshake_bytes: int
    handshake_s: float | None
    kinds: list[Kind]
    times: list[Times]
    notes: list[dict[str, Any]]

    def as_dict(self) -> dict[str, Any]:
        """Return the figures by name, those of kinds and times too."""
        return self._asdict() | {"kinds": [kind._asdict() for kind in self.kinds], "times": [timing._asdict() for timing in self.times]}


class Total(NamedTuple):
    """Figures of all sessions together; bytes at the chosen layer."""

    sessions: int
    data_messages: int
    data_bytes: int
    session_bytes: int
    overhead_bytes: int


class Sessions(Sequence[SessionFigures]):
    """The figures of each session, made when it is looked at: a capture may have more sessions than anybody looks at."""

    def __init__(self, sums: _native.Sums, choices: Choices) -> None:
        """Take what a pass has found, and what the user chose."""
        self.sums, self.choices = sums, choices

    def __len__(self) -> int:
        """Return the number of sessions."""
        return len(self.sums)

    @overload
    def __getitem__(self, index: int) -> SessionFigures: ...
    @overload
    def __getitem__(self, index: slice) -> list[SessionFigures]: ...
    def __getitem__(self, index: int | slice) -> SessionFigures | list[SessionFigures]:
        """Return the figures of the session with this number, or of several."""
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        return session_figures(self.sums.session(range(len(self))[index]), self.choices)

    def chosen(self, wanted: Collection[int]) -> Iterator[SessionFigures]:
        """Return the sessions with the wanted numbers, or all where none is wanted; numbers that are not there are left out."""
        numbers = range(len(self))
        return (self[number] for number in (sorted({*wanted} & {*numbers}) if wanted else numbers))

    def largest(self, count: int) -> list[SessionFigures]:
        """Return the sessions with the most bytes on the wire, in the order of their numbers."""
        return [self[number] for number in self.sums.largest(count)]


class Summary(NamedTuple):
    """Figures of a capture: its sessions, its files, frames that are in no session, and notes about the whole."""

    sessions: Sessions
    captures: list[dict[str, Any]]
    others: list[dict[str, Any]]
    unmatched_ports: list[dict[str, Any]]
    notes: list[dict[str, Any]]
    choices: Choices
    engine: Choice | None = None

    @property
    def damage(self) -> list[str]:
        """What ended the reading of a file early, one line each."""
        return [capture["damage"] for capture in self.captures if capture["damage"]]

    @property
    def has_notes(self) -> bool:
        """Whether there is anything that the capture does not show."""
        return bool(self.notes) or self.sessions.sums.has_session_notes

    @property
    def total(self) -> Total:
        """All sessions together."""
        sums, choices = self.sessions.sums.total(), self.choices
        parts = add(sums["parts"], sums["control_parts"]) if choices.transport_control else sums["parts"]
        session_bytes = layer_bytes(parts, choices.layer)
        data_bytes = sums["data_bytes"]
        return Total(len(self.sessions), sums["data_messages"], data_bytes, session_bytes, session_bytes - data_bytes)


def layer_bytes(parts: list[int], layer: str) -> int:
    """Bytes of the nine parts that the layer counts."""
    return sum(size for name, size in zip(PARTS, parts, strict=True) if name in LAYERS[layer])


def add(*several: list[int]) -> list[int]:
    """Add parts up."""
    return [sum(sizes) for sizes in zip(*several, strict=True)]


def time1(row: dict[str, Any], wanted: str | None) -> tuple[str | None, int | None]:
    """Time1 and which one it is (formula 1): the wanted one, or the first that the capture shows."""
    for name in (wanted,) if wanted else TIME1:
        time_ns = row[f"time1_{name}_ns"]
        if time_ns is not None:
            return name, time_ns
    return None, None


def time2(direction: dict[str, Any]) -> tuple[str | None, int | None]:
    """Time2 and which one it is (formula 1): the acknowledgement of the last data message where one is due, else its arrival."""
    if direction["is_ack_expected"] and direction["data_last_ack_ns"] is not None:
        return "acknowledgement", direction["data_last_ack_ns"]
    if direction["data_last_ns"] is not None:
        return "arrival", direction["data_last_ns"]
    return None, None


def data_span(direction: dict[str, Any]) -> float | None:
    """Seconds from the arrival of the first data message to that of the last."""
    first_ns, last_ns = direction["data_first_ns"], direction["data_last_ns"]
    return None if first_ns is None or last_ns is None else (last_ns - first_ns) / 1e9


class Receiving(Protocol):
    """What tells whether a session receives the data of a run."""

    @property
    def receiver(self) -> str:
        """Who receives the data: client or server."""

    @property
    def data_messages(self) -> int:
        """Data messages to the receiver."""


Session = TypeVar("Session", bound=Receiving)


def receiver_of(sessions: Iterable[Session]) -> Session | None:
    """Return the session that receives the data: the one with most data messages, a subscriber's before a publisher's."""
    with_data = [session for session in sessions if session.data_messages]
    if not with_data:
        return None
    most = max(session.data_messages for session in with_data)
    # a broker's capture holds the publisher's session too, which may have a few messages more than the subscriber took
    near = [session for session in with_data if session.data_messages >= most / 2]
    return max(near, key=lambda session: (session.receiver == "client", session.data_messages))


def summarize(sums: _native.Sums, choices: Choices, engine: Choice | None = None) -> Summary:
    """Make the figures of a capture."""
    return Summary(Sessions(sums, choices), sums.captures, sums.others, sums.unmatched_ports, sums.notes, choices, engine)


def session_figures(rows: dict[str, Any], choices: Choices) -> SessionFigures:
    """Make the figures of one session (metrics.md, formulas 1 to 4)."""
    row, layer = rows["session"], choices.layer
    main_name = "s2c" if row["receiver"] == "client" else "c2s"
    main = next(direction for direction in rows["directions"] if direction["direction"] == main_name)
    time1_name, time1_ns = time1(row, choices.time1)
    time2_name, time2_ns = time2(main)
    delta_s = None if time1_ns is None or time2_ns is None else (time2_ns - time1_ns) / 1e9
    control = add(*(direction["control_parts"] for direction in rows["directions"]))
    spent = add(*(kind["parts"] for kind in rows["kinds"]), *(direction["unassigned_parts"] for direction in rows["directions"]))
    session_parts = add(spent, control) if choices.transport_control else spent
    session_bytes = layer_bytes(session_parts, layer)
    data_bytes = main["data_bytes"]
    publisher_bytes = layer_bytes(main["publisher_parts"], layer)
    return SessionFigures(
        **identity(row),
        layer=layer,
        time1=time1_name,
        time1_s=seconds(time1_ns),
        time1_ns=time1_ns,
        time2=time2_name,
        time2_s=seconds(time2_ns),
        time2_ns=time2_ns,
        delta_time_s=delta_s,
        data_span_s=data_span(main),
        data_messages=main["data_messages"],
        data_bytes=data_bytes,
        goodput_bytes_per_s=ratio(data_bytes, delta_s or 0),
        throughput_bytes_per_s=ratio(layer_bytes(main["data_parts"], layer), delta_s or 0),
        throughput_all_bytes_per_s=ratio(layer_bytes(main["received_until_time2"], layer), delta_s or 0),
        session_bytes=session_bytes,
        control_bytes=layer_bytes(control, layer),
        overhead_bytes=session_bytes - data_bytes,
        overhead_both_legs_bytes=session_bytes + publisher_bytes - data_bytes if publisher_bytes else None,
        overhead_ratio=ratio(session_bytes - data_bytes, session_bytes),
        overhead_by_part_bytes=overhead_by_part(session_parts, data_bytes, main["data_saved_bytes"], layer),
        message_rate_per_s=ratio(main["data_messages"], delta_s or 0),
        kinds=[kind_figures(kind, layer) for kind in rows["kinds"]],
        times=[times(timing) for timing in rows["timings"]],
        notes=rows["notes"],
    )


def overhead_by_part(parts: list[int], data_bytes: int, saved_bytes: int, layer: str) -> Parts:
    """Return the overhead by part: what is neither data nor outside the layer. Payload that is no data (sent again) counts too.

    `saved_bytes`, by which compressed data is larger than what it takes on the wire, are less overhead: the part `compression`.
    """
    shares = {name: size for name, size in zip(PARTS, parts, strict=True) if name in LAYERS[layer]}
    wire_bytes = data_bytes - saved_bytes
    hidden = max(wire_bytes - shares["payload"], 0)
    shares["payload"] -= wire_bytes - hidden
    shares["opaque"] -= hidden
    shares["compression"] = -saved_bytes
    return {name: size for name, size in shares.items() if size}


def kind_figures(kind: dict[str, Any], layer: str) -> Kind:
    """Figures of one kind of message."""
    name = " ".join(word for word in (kind["kind"], kind["variant"]) if word)
    sizes = (kind["messages"], kind["message_bytes_min"], kind["message_bytes_max"], layer_bytes(kind["parts"], layer))
    return Kind(kind["direction"], name, *sizes)


def endpoint(address: str, port: int) -> str:
    """Write an address and port as one."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


COPIED = (
    "session",
    "protocol",
    "version",
    "security",
    "client_identifier",
    "receiver",
    "frame_first",
    "frame_last",
    "control_frames",
    "messages",
    "retransmissions",
    "tcp_retransmissions",
    "tcp_out_of_order",
    "lost_bytes",
    "captured_twice",
    "link_retransmissions",
    "malformed",
    "field_section_bytes",
    "field_block_bytes",
    "exchanges_complete",
    "exchanges_unanswered",
    "handshake_bytes",
)


def identity(row: dict[str, Any]) -> dict[str, Any]:
    """Return what the session's row tells as it is."""
    copied = {name: row[name] for name in COPIED}
    return copied | {
        "client": endpoint(row["client_address"], row["client_port"]),
        "server": endpoint(row["server_address"], row["server_port"]),
        "filter": " or ".join(f"{row['transport']}.stream eq {stream}" for stream in (row["stream"], *row["moved_streams"])),
        "handshake_s": seconds(row["handshake_ns"]),
    }
