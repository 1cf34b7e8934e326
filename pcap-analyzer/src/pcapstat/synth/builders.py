"""Frames around what is said: scapy builds records' sizes, segments, datagrams and packets, and writes the capture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pcapstat.synth.run import Saying, sayings
from pcapstat.synth.scenario import Scenario
from pcapstat.theory.security import PROTECTIONS

START_S = 1_700_000_000
MSS = 1448
ADDRESSES = {4: ("192.0.2.1", "192.0.2.2", "192.0.2.3"), 6: ("2001:db8::1", "2001:db8::2", "2001:db8::3")}
"""Receiver, server or broker, publisher: addresses for documentation (RFC 5737, RFC 3849)."""


def protect(scenario: Scenario, content: bytes, number: int) -> bytes:
    """Put content into a record of the size that its protection makes: zeros stand for what would be encrypted."""
    protection = PROTECTIONS[scenario.security]
    if protection is None:
        return content
    length = protection.nonce_bytes + len(content) + protection.type_bytes + protection.tag_bytes
    if scenario.transport == "tcp":
        return b"\x17\x03\x03" + length.to_bytes(2, "big") + bytes(length)
    if protection.header_bytes == 13:
        return b"\x17\xfe\xfd\x00\x01" + number.to_bytes(6, "big") + length.to_bytes(2, "big") + bytes(length)
    return b"\x2e" + number.to_bytes(2, "big") + length.to_bytes(2, "big") + bytes(length)


class Talk:
    """One conversation: its sequence numbers and frames."""

    def __init__(self, scenario: Scenario, number: int) -> None:
        """Begin it: with SYN, SYN-ACK and ACK where it is TCP's."""
        self.scenario, self.records = scenario, 0
        addresses = ADDRESSES[scenario.ip]
        self.ends = (addresses[0 if number == 0 else 2], addresses[1])
        self.client_port = 40000 + number
        self.sequence = {True: 1, False: 1}
        self.frames: list[Any] = []
        self.begun_ms: float | None = None

    def open(self, time_ms: float) -> None:
        """Open the connection just before its first message."""
        self.begun_ms = time_ms
        if self.scenario.transport == "tcp":
            for step, (from_client, flags) in enumerate(((True, "S"), (False, "SA"), (True, "A"))):
                self.frame(
                    time_ms - 3e-3 + step * 1e-3,
                    from_client,
                    self.segment(from_client, flags, 0 if "S" in flags else 1, 1 if "A" in flags else 0),
                )

    def segment(self, from_client: bool, flags: str, sequence: int, acknowledgement: int) -> Any:
        """Return a TCP header with the timestamp option, as systems send it."""
        from scapy.layers.inet import TCP

        ports = (self.client_port, self.scenario.port) if from_client else (self.scenario.port, self.client_port)
        options = [("NOP", None), ("NOP", None), ("Timestamp", (0, 0))]
        return TCP(sport=ports[0], dport=ports[1], flags=flags, seq=sequence, ack=acknowledgement, options=options)

    def frame(self, time_ms: float, from_client: bool, content: Any) -> None:
        """Put a segment or datagram into a packet and a frame."""
        from scapy.layers.inet import IP
        from scapy.layers.inet6 import IPv6
        from scapy.layers.l2 import Ether

        source, destination = self.ends if from_client else self.ends[::-1]
        network = IP(src=source, dst=destination) if self.scenario.ip == 4 else IPv6(src=source, dst=destination)
        packet = network / content
        if self.scenario.link == "ethernet":
            packet = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / packet
        packet.time = START_S + time_ms / 1000
        self.frames.append(packet)

    def say(self, saying: Saying) -> None:
        """Send a message: in a datagram, or in segments that the peer acknowledges."""
        from scapy.layers.inet import UDP

        if self.begun_ms is None:
            self.open(saying.time_ms)
        self.records += 1
        data = protect(self.scenario, saying.content, self.records)
        if self.scenario.transport == "udp":
            ports = (self.client_port, self.scenario.port) if saying.from_client else (self.scenario.port, self.client_port)
            self.frame(saying.time_ms, saying.from_client, UDP(sport=ports[0], dport=ports[1]) / data)
            return
        for at in range(0, len(data), MSS):
            part = data[at : at + MSS]
            mine, peers = self.sequence[saying.from_client], self.sequence[not saying.from_client]
            self.frame(saying.time_ms + at * 1e-6, saying.from_client, self.segment(saying.from_client, "PA", mine, peers) / part)
            self.sequence[saying.from_client] += len(part)
        bare = self.segment(not saying.from_client, "A", self.sequence[not saying.from_client], self.sequence[saying.from_client])
        self.frame(saying.time_ms + len(data) * 1e-6 + 1e-3, not saying.from_client, bare)


def build(scenario: Scenario, path: Path) -> int:
    """Write the capture of a scenario, pcapng. Returns the number of frames."""
    from scapy.utils import PcapNgWriter

    talks = {number: Talk(scenario, number) for number in (0, 1)}
    for saying in sayings(scenario):
        talks[saying.conversation].say(saying)
    frames = sorted((frame for talk in talks.values() for frame in talk.frames), key=lambda frame: float(frame.time))
    with PcapNgWriter(str(path)) as writer:
        for frame in frames:
            writer.write(frame)
    return len(frames)
