"""Frames around what is said: scapy builds records' sizes, segments, datagrams and packets, and writes the capture."""

from __future__ import annotations

import contextlib
import math
from pathlib import Path
from typing import Any, cast

from pcapstat.synth.handshake import Flight, flights
from pcapstat.synth.records import Layer
from pcapstat.synth.run import Saying, sayings
from pcapstat.synth.scenario import Scenario
from pcapstat.theory.envelope import IP as IP_HEADER
from pcapstat.theory.envelope import MTU, check_datagram
from pcapstat.theory.envelope import Path as Carrier
from pcapstat.theory.security import records

START_S = 1_700_000_000
STEP_MS, INTERACTIVE = 1e-3, 3
"""What a system takes to react; answers that make a side interactive."""
ADDRESSES = {4: ("192.0.2.1", "192.0.2.2", "192.0.2.3"), 6: ("2001:db8::1", "2001:db8::2", "2001:db8::3")}
"""Receiver, server or broker, publisher: addresses for documentation (RFC 5737, RFC 3849)."""


class Ends:
    """What TCP knows at one side: the next sequence number, and what it has received and not acknowledged."""

    def __init__(self) -> None:
        """Begin behind SYN."""
        self.sequence = 1
        self.unacknowledged = 0
        self.due_ms: float | None = None
        self.received_ms: float | None = None
        self.answers = 0

    @property
    def is_interactive(self) -> bool:
        """Whether it waits for data to send an acknowledgement along with: once it answered data three times, as the recordings do."""
        return self.answers >= INTERACTIVE

    def say(self, time_ms: float, delay_ms: float) -> None:
        """Send data, and the acknowledgement with it."""
        if self.received_ms is not None and time_ms - self.received_ms <= delay_ms:
            self.answers += 1
        self.acknowledged()

    def acknowledged(self) -> None:
        """Take all that was received as acknowledged."""
        self.unacknowledged, self.due_ms = 0, None


class Talk:
    """One conversation: its sequence numbers and frames."""

    def __init__(self, scenario: Scenario, number: int) -> None:
        """Begin it: with SYN, SYN-ACK and ACK where it is TCP's, with a handshake where it is secured."""
        self.scenario = scenario
        addresses = ADDRESSES[scenario.ip]
        self.addresses = (addresses[0 if number == 0 else 2], addresses[1])
        self.client_port = 40000 + number
        self.ends = {True: Ends(), False: Ends()}
        self.layers = {True: Layer(scenario), False: Layer(scenario)}
        self.frames: list[Any] = []
        self.is_open = False
        self.long_datagrams = 0
        self.segment_bytes = Carrier(scenario.transport, scenario.link, scenario.ip).segment_bytes

    def open(self, time_ms: float) -> None:
        """Open the connection just before its first message: a flight of the server's comes a round trip after the client's."""
        self.is_open = True
        opening = flights(self.scenario)
        begin_ms = time_ms - STEP_MS - sum(self.gap_ms(flight) for flight in opening)
        if self.scenario.transport == "tcp":
            for when, from_client, flags in ((-self.scenario.rtt_ms, True, "S"), (-2 * STEP_MS, False, "SA"), (-STEP_MS, True, "A")):
                numbers = (0 if "S" in flags else 1, 1 if "A" in flags else 0)
                self.frame(begin_ms + when, from_client, self.segment(from_client, flags, *numbers))
        for flight in opening:
            begin_ms += self.gap_ms(flight)
            layer = self.layers[flight.from_client]
            self.send(begin_ms, flight.from_client, b"".join(layer.record(record) for record in flight.records))

    def gap_ms(self, flight: Flight) -> float:
        """Return the time before a flight, at the client."""
        return STEP_MS if flight.from_client else self.scenario.rtt_ms

    def segment(self, from_client: bool, flags: str, sequence: int, acknowledgement: int) -> Any:
        """Return a TCP header with the options that systems send: in SYN 20 bytes, later the timestamps."""
        from scapy.layers.inet import TCP

        ports = (self.client_port, self.scenario.port) if from_client else (self.scenario.port, self.client_port)
        stamps = ("Timestamp", (0, 0))
        opening = [("MSS", MTU - IP_HEADER[self.scenario.ip][0] - 20), ("SAckOK", b""), stamps, ("NOP", None), ("WScale", 7)]
        options = opening if "S" in flags else [("NOP", None), ("NOP", None), stamps]
        return TCP(sport=ports[0], dport=ports[1], flags=flags, seq=sequence, ack=acknowledgement, options=options)

    def frame(self, time_ms: float, from_client: bool, content: Any) -> None:
        """Put a segment or datagram into a packet, or into fragments where it is too long for one, and into frames."""
        from scapy.layers.l2 import Ether

        for packet in self.packets(from_client, content):
            framed = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / packet if self.scenario.link == "ethernet" else packet
            framed.time = START_S + time_ms / 1000
            self.frames.append(framed)

    def packets(self, from_client: bool, content: Any) -> list[Any]:
        """Return the packets around a segment or datagram; fragments have an identification of their datagram's own."""
        from scapy.layers.inet import IP
        from scapy.layers.inet6 import IPv6, IPv6ExtHdrFragment, fragment6

        source, destination = self.addresses if from_client else self.addresses[::-1]
        is_long = len(content) + IP_HEADER[self.scenario.ip][0] > MTU
        self.long_datagrams += is_long
        if self.scenario.ip == 4:
            whole = IP(src=source, dst=destination, id=self.long_datagrams % 2**16 if is_long else 1) / content
            return list(whole.fragment(MTU - IP_HEADER[4][0])) if is_long else [whole]
        network = IPv6(src=source, dst=destination)
        # scapy's function has no types
        cut = cast(Any, fragment6)
        return list(cut(network / IPv6ExtHdrFragment(id=self.long_datagrams) / content, MTU)) if is_long else [network / content]

    def say(self, saying: Saying) -> None:
        """Send a message. Raises UsageError where it does not fit a record or a datagram."""
        if not self.is_open:
            self.open(saying.time_ms)
        records(self.scenario.security, self.scenario.transport, len(saying.content))
        data = self.layers[saying.from_client].around(saying.content)
        check_datagram(self.scenario.transport, self.scenario.ip, len(data))
        self.send(saying.time_ms, saying.from_client, data)

    def send(self, time_ms: float, from_client: bool, data: bytes) -> None:
        """Send bytes: in a datagram, or in segments that the peer acknowledges."""
        from scapy.layers.inet import UDP

        if self.scenario.transport == "udp":
            ports = (self.client_port, self.scenario.port) if from_client else (self.scenario.port, self.client_port)
            self.frame(time_ms, from_client, UDP(sport=ports[0], dport=ports[1]) / data)
            return
        self.acknowledge_until(time_ms)
        mine, peers = self.ends[from_client], self.ends[not from_client]
        mine.say(time_ms, self.scenario.delayed_ack_ms)
        for at in range(0, len(data), self.segment_bytes):
            part, when_ms = data[at : at + self.segment_bytes], time_ms + at * 1e-6
            self.frame(when_ms, from_client, self.segment(from_client, "PA", mine.sequence, peers.sequence) / part)
            mine.sequence += len(part)
            self.receive(when_ms + STEP_MS, not from_client, len(part))

    def receive(self, time_ms: float, to_client: bool, count: int) -> None:
        """Take a segment in: two full ones are acknowledged at once (RFC 5681 §4.2), others when the side is not about to answer."""
        end = self.ends[to_client]
        end.received_ms, end.unacknowledged = time_ms, end.unacknowledged + count
        if end.unacknowledged >= 2 * self.segment_bytes or not end.is_interactive:
            self.acknowledge(time_ms, to_client)
        elif end.due_ms is None:
            end.due_ms = time_ms + self.scenario.delayed_ack_ms

    def acknowledge(self, time_ms: float, to_client: bool) -> None:
        """Send a bare acknowledgement."""
        self.frame(time_ms, to_client, self.segment(to_client, "A", self.ends[to_client].sequence, self.ends[not to_client].sequence))
        self.ends[to_client].acknowledged()

    def acknowledge_until(self, time_ms: float) -> None:
        """Send the acknowledgements that nothing went along with in time."""
        for to_client, end in self.ends.items():
            if end.due_ms is not None and end.due_ms <= time_ms:
                self.acknowledge(end.due_ms, to_client)
                end.answers = 0


def build(scenario: Scenario, target: Path | int) -> int:
    """Write the capture of a scenario, pcapng, to a path or to an open descriptor, which is closed. Returns the number of frames."""
    from scapy.utils import PcapNgWriter

    talks = {number: Talk(scenario, number) for number in (0, 1)}
    for saying in sayings(scenario):
        talks[saying.conversation].say(saying)
    for talk in talks.values():
        talk.acknowledge_until(math.inf)
    frames = sorted((frame for talk in talks.values() for frame in talk.frames), key=lambda frame: float(frame.time))
    # scapy gives it to open(), which takes both; as a context it would leave the file open where the disk is full
    with contextlib.closing(PcapNgWriter(cast(str, target))) as writer:
        for frame in frames:
            writer.write(frame)
    return len(frames)
