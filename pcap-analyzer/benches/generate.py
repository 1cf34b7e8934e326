"""Generated captures for the benchmarks: seeded, of any length, written as they are made.

`mqtt`: MQTT 5 QoS 1 over many connections, PUBLISH packets split over segments, merged in one, and sent again now and then.
`coap`: CoAP confirmable requests with piggybacked responses, and Observe notifications with their acknowledgements, at many endpoints.
"""

from __future__ import annotations

import random
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

PCAP_HEADER = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1)
ETHERNET = bytes.fromhex("020000000002020000000001") + b"\x08\x00"
FRAME_INTERVAL_NS = 500_000
TCP_ACK, TCP_PSH_ACK, TCP_SYN, TCP_SYN_ACK = 0x10, 0x18, 0x02, 0x12
SERVER = 0x0A00_0001


def ip_frame(protocol: int, source: int, destination: int, identification: int, segment: bytes) -> bytes:
    """Build an Ethernet frame with an IPv4 packet (checksums left at zero, as offload leaves them)."""
    header = struct.pack(">BBHHHBBHII", 0x45, 0, 20 + len(segment), identification & 0xFFFF, 0x4000, 64, protocol, 0, source, destination)
    return ETHERNET + header + segment


class Connection:
    """One TCP connection of an MQTT client that publishes at QoS 1."""

    def __init__(self, number: int) -> None:
        """Give the connection addresses of its own."""
        self.client = (0x0A01_0000 + number // 200, 20_000 + number % 200)
        self.sent = [1000, 5000]
        self.identification = 0
        self.packet_identifier = 0
        self.topic = f"site/{number}/sensor".encode()

    def segment(self, side: int, flags: int, payload: bytes = b"", back: int = 0) -> bytes:
        """Build a segment from the client (0) or the server (1); `back` bytes before the next one for a retransmission."""
        self.identification += 1
        address, port = self.client
        ports = (port, 1883) if side == 0 else (1883, port)
        addresses = (address, SERVER) if side == 0 else (SERVER, address)
        sequence = self.sent[side] - back
        header = struct.pack(">HHIIBBHHH", *ports, sequence, self.sent[1 - side], 0x50, flags, 65535, 0, 0)
        if not back:
            self.sent[side] += len(payload) + (1 if flags & TCP_SYN else 0)
        return ip_frame(6, *addresses, self.identification, header + payload)

    def opening(self) -> Iterator[bytes]:
        """SYN, SYN-ACK, ACK, CONNECT, CONNACK."""
        identifier = f"client-{self.client[0]:x}-{self.client[1]}".encode()
        body = b"\0\x04MQTT\x05\x02\0\x3c\0" + struct.pack(">H", len(identifier)) + identifier
        yield self.segment(0, TCP_SYN)
        yield self.segment(1, TCP_SYN_ACK)
        yield self.segment(0, TCP_ACK)
        yield self.segment(0, TCP_PSH_ACK, bytes([0x10, len(body)]) + body)
        yield self.segment(1, TCP_PSH_ACK, b"\x20\x03\0\0\0")

    def publish(self) -> tuple[bytes, int]:
        """Return a PUBLISH packet and its identifier; the topic is set once and then stands as alias 1."""
        self.packet_identifier = self.packet_identifier % 65_535 + 1
        topic = self.topic if self.packet_identifier == 1 else b""
        body = struct.pack(">H", len(topic)) + topic + struct.pack(">HBBH", self.packet_identifier, 3, 0x23, 1)
        body += f"Hi!{self.packet_identifier:07d}".encode()
        return bytes([0x32, len(body)]) + body, self.packet_identifier

    def turn(self, chance: random.Random) -> Iterator[bytes]:
        """One PUBLISH as a rule; sometimes two merged in a segment, one split over two, or one whose segment is sent again."""
        draw = chance.random()
        publish, identifier = self.publish()
        acknowledgements = struct.pack(">BBH", 0x40, 2, identifier)
        if draw < 0.1:
            second, identifier = self.publish()
            yield self.segment(0, TCP_PSH_ACK, publish + second)
            acknowledgements += struct.pack(">BBH", 0x40, 2, identifier)
        elif draw < 0.2:
            cut = chance.randrange(1, len(publish))
            yield self.segment(0, TCP_PSH_ACK, publish[:cut])
            yield self.segment(0, TCP_PSH_ACK, publish[cut:])
        else:
            yield self.segment(0, TCP_PSH_ACK, publish)
            if draw < 0.22:
                yield self.segment(0, TCP_PSH_ACK, publish, back=len(publish))
        yield self.segment(1, TCP_PSH_ACK, acknowledgements)


def mqtt_frames(endpoints: int, chance: random.Random) -> Iterator[bytes]:
    """Endless frames of MQTT connections in random turns."""
    connections = [Connection(number) for number in range(endpoints)]
    for connection in connections:
        yield from connection.opening()
    while True:
        yield from connections[chance.randrange(endpoints)].turn(chance)


def datagram(source: tuple[int, int], destination: tuple[int, int], identification: int, payload: bytes) -> bytes:
    """Build a UDP datagram in its frame."""
    header = struct.pack(">HHHH", source[1], destination[1], 8 + len(payload), 0)
    return ip_frame(17, source[0], destination[0], identification, header + payload)


def coap_frames(endpoints: int, chance: random.Random) -> Iterator[bytes]:
    """Endless frames of CoAP clients: GET and its piggybacked response, or a CON notification and its ACK."""
    server = (SERVER, 5683)
    clients = [(0x0A02_0000 + number // 200, 30_000 + number % 200) for number in range(endpoints)]
    turns = [0] * endpoints
    identification = 0
    for number, client in enumerate(clients):
        token = struct.pack(">I", number)
        yield datagram(client, server, 1, b"\x44\x01\0\0" + token + b"\x60\x54temp")
        yield datagram(server, client, 1, b"\x64\x45\0\0" + token + b"\x61\x01\x60\xff0000000000")
    while True:
        number = chance.randrange(endpoints)
        turns[number] += 1
        turn, client, identification = turns[number], clients[number], identification + 1
        message_id = struct.pack(">H", turn & 0xFFFF)
        if chance.random() < 0.5:
            token = b"\x55" + struct.pack(">I", turn)[1:]
            yield datagram(client, server, identification, b"\x44\x01" + message_id + token + b"\xb4temp")
            yield datagram(server, client, identification, b"\x64\x45" + message_id + token + b"\xc0\xffHi!0000001")
        else:
            token = struct.pack(">I", number)
            observe = struct.pack(">I", turn + 1)[1:]
            yield datagram(server, client, identification, b"\x44\x45" + message_id + token + b"\x63" + observe + b"\x60\xffHi!0000001")
            yield datagram(client, server, identification, b"\x60\x00" + message_id)


KINDS = {"mqtt": mqtt_frames, "coap": coap_frames}


def write(path: Path, kind: str, frames: int, endpoints: int) -> None:
    """Write a nanosecond pcap of `frames` frames, the same ones each time."""
    source = KINDS[kind](endpoints, random.Random(1))
    record = struct.Struct("<IIII")
    with path.open("wb") as file:
        file.write(PCAP_HEADER)
        for number in range(frames):
            frame = next(source)
            seconds, nanoseconds = divmod(1_700_000_000_000_000_000 + number * FRAME_INTERVAL_NS, 1_000_000_000)
            file.write(record.pack(seconds, nanoseconds, len(frame), len(frame)) + frame)


if __name__ == "__main__":
    write(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
