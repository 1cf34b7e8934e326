"""Captures of hand-made messages: bytes by direction and time, in UDP or TCP as scapy builds it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

C, S = True, False
"""From the client, from the server."""
MACS = {"src": "02:00:00:00:00:01", "dst": "02:00:00:00:00:02"}
"""Ethernet addresses of what is built: without them scapy asks the network who has the IP address, and waits for an answer."""
Said = Sequence[tuple[bool, bytes] | tuple[bool, bytes, float]]


def packets(said: Said, transport: str, port: int, group: bool = False, client_port: int = 40000) -> list[Any]:
    """Return packets of what was said, one a message, a hundredth of a second apart unless a time is told."""
    from scapy.layers.inet import IP, TCP, UDP
    from scapy.layers.l2 import Ether

    ends = ("192.0.2.1", "224.0.1.187" if group else "192.0.2.2")
    built, sequence, time = [], {C: 1, S: 1}, 0.01
    if transport == "tcp":
        for number, (from_client, flags) in enumerate(((C, "S"), (S, "SA"), (C, "A"))):
            tcp = TCP(sport=client_port if from_client else port, dport=port if from_client else client_port, flags=flags)
            tcp.seq, tcp.ack = (0 if "S" in flags else 1), (1 if "A" in flags else 0)
            built.append((number / 1000, from_client, tcp))
    for entry in said:
        from_client, data = entry[0], entry[1]
        time = entry[2] if len(entry) > 2 else time + 0.01
        ports = {"sport": client_port if from_client else port, "dport": port if from_client else client_port}
        if transport == "udp":
            built.append((time, from_client, UDP(**ports) / data))
            continue
        built.append((time, from_client, TCP(**ports, flags="PA", seq=sequence[from_client], ack=sequence[not from_client]) / data))
        sequence[from_client] += len(data)
    frames = []
    for when, from_client, segment in built:
        source, destination = ends if from_client else ends[::-1]
        frame = Ether(**MACS) / IP(src=source, dst=destination) / segment
        frame.time = 1_700_000_000 + when
        frames.append(frame)
    return frames


def capture(path: Path, said: Said, transport: str, port: int, group: bool = False) -> Path:
    """Write a capture."""
    from scapy.utils import wrpcap

    wrpcap(str(path), packets(said, transport, port, group))
    return path


def two_connections(path: Path, first: Said, second: Said, second_s: float) -> Path:
    """Write a capture of two MQTT connections, the second of which begins so many seconds later."""
    from scapy.utils import wrpcap

    frames = packets(first, "tcp", 1883)
    for frame in packets(second, "tcp", 1883, client_port=40001):
        frame.time += second_s
        frames.append(frame)
    wrpcap(str(path), sorted(frames, key=lambda frame: float(frame.time)))
    return path


def mqtt(kind: int, body: bytes = b"", flags: int = 0) -> bytes:
    """Return a control packet (MQTT 5 §2.1), shorter than 16,384 bytes."""
    length = len(body)
    remaining = bytes([length]) if length < 128 else bytes([length % 128 | 128, length // 128])
    return bytes([kind << 4 | flags]) + remaining + body


def text(value: str) -> bytes:
    """Return a UTF-8 string behind its length."""
    return len(value.encode()).to_bytes(2, "big") + value.encode()


def connect(properties: bytes = b"", clean: bool = True, keep_alive: int = 60, identifier: str = "a") -> bytes:
    """Return CONNECT of MQTT 5."""
    head = text("MQTT") + bytes([5, 2 if clean else 0]) + keep_alive.to_bytes(2, "big")
    return mqtt(1, head + bytes([len(properties)]) + properties + text(identifier))


def connect_311(clean: bool = True, identifier: str = "a", flags: int = 0, rest: bytes = b"") -> bytes:
    """Return CONNECT of MQTT 3.1.1, with further flags and what they announce."""
    return mqtt(1, text("MQTT") + bytes([4, flags | (2 if clean else 0), 0, 60]) + text(identifier) + rest)


def connack(code: int = 0, present: bool = False, properties: bytes = b"") -> bytes:
    """Return CONNACK of MQTT 5."""
    return mqtt(2, bytes([present, code, len(properties)]) + properties)


def connack_311(code: int = 0, present: bool = False) -> bytes:
    """Return CONNACK of MQTT 3.1.1."""
    return mqtt(2, bytes([present, code]))


def publish(
    identifier: int = 0,
    qos: int = 0,
    dup: bool = False,
    topic: str = "t",
    properties: bytes = b"",
    payload: bytes = b"x",
    retain: bool = False,
) -> bytes:
    """Return PUBLISH of MQTT 5."""
    number = identifier.to_bytes(2, "big") if qos else b""
    return mqtt(3, text(topic) + number + bytes([len(properties)]) + properties + payload, dup << 3 | qos << 1 | retain)


def publish_311(identifier: int = 0, qos: int = 0, dup: bool = False) -> bytes:
    """Return PUBLISH of MQTT 3.1.1."""
    number = identifier.to_bytes(2, "big") if qos else b""
    return mqtt(3, text("t") + number + b"x", dup << 3 | qos << 1)


def ack(kind: int, identifier: int, code: int | None = None, properties: bytes = b"") -> bytes:
    """Return PUBACK (4), PUBREC (5), PUBREL (6) or PUBCOMP (7)."""
    rest = b"" if code is None else bytes([code])
    rest += bytes([len(properties)]) + properties if properties else b""
    return mqtt(kind, identifier.to_bytes(2, "big") + rest, 2 if kind == 6 else 0)


def subscribe(identifier: int, *filters: str, qos: int = 0, properties: bytes = b"") -> bytes:
    """Return SUBSCRIBE of MQTT 5."""
    payload = b"".join(text(each) + bytes([qos]) for each in filters)
    return mqtt(8, identifier.to_bytes(2, "big") + bytes([len(properties)]) + properties + payload, 2)


def suback(identifier: int, *codes: int, properties: bytes = b"") -> bytes:
    """Return SUBACK of MQTT 5."""
    return mqtt(9, identifier.to_bytes(2, "big") + bytes([len(properties)]) + properties + bytes(codes))


def unsubscribe(identifier: int, *filters: str) -> bytes:
    """Return UNSUBSCRIBE of MQTT 5."""
    return mqtt(10, identifier.to_bytes(2, "big") + b"\0" + b"".join(text(each) for each in filters), 2)


def unsuback(identifier: int, *codes: int) -> bytes:
    """Return UNSUBACK of MQTT 5."""
    return mqtt(11, identifier.to_bytes(2, "big") + b"\0" + bytes(codes))


def disconnect(code: int = 0, properties: bytes = b"") -> bytes:
    """Return DISCONNECT of MQTT 5."""
    return mqtt(14, bytes([code, len(properties)]) + properties)


def auth(code: int, method: str = "") -> bytes:
    """Return AUTH of MQTT 5."""
    return mqtt(15, bytes([code]) + with_length(by(METHOD, method) if method else b""))


def with_length(properties: bytes) -> bytes:
    """Return properties behind their length."""
    return bytes([len(properties)]) + properties


METHOD, RESPONSE_TOPIC, REASON_STRING, ASSIGNED, RESPONSE_INFORMATION = 0x15, 0x08, 0x1F, 0x12, 0x1A
"""Properties that are strings (MQTT 5 §2.2.2.2)."""


def by(identifier: int, value: str) -> bytes:
    """Return a property that is a string."""
    return bytes([identifier]) + text(value)


CON, NON, ACK, RST = range(4)


def coap(
    kind: int, code: int, message_id: int, token: bytes = b"", options: Sequence[tuple[int, bytes]] = (), payload: bytes = b""
) -> bytes:
    """Return a CoAP message (RFC 7252 §3) whose deltas and lengths are below 269."""
    out, before = bytes([1 << 6 | kind << 4 | len(token), code]) + message_id.to_bytes(2, "big") + token, 0
    for number, value in options:
        nibbles, extended = 0, b""
        for shift, count in ((4, number - before), (0, len(value))):
            nibbles |= min(count, 13) << shift
            extended += bytes([count - 13]) if count > 12 else b""
        out += bytes([nibbles]) + extended + value
        before = number
    return out + (b"\xff" + payload if payload else b"")


def coap_tcp(code: int, token: bytes = b"", options: Sequence[tuple[int, bytes]] = ()) -> bytes:
    """Return a CoAP message over TCP (RFC 8323 §3.2) with less than 13 bytes of options and no payload."""
    body = coap(CON, code, 0, b"", options)[4:]
    return bytes([len(body) << 4 | len(token), code]) + token + body


GET, POST, DELETE, VALID, CHANGED, CONTENT, CONTINUE, NOT_FOUND = 1, 2, 4, 67, 68, 69, 95, 132
CSM, PING_7, PONG_7, ABORT = 225, 226, 227, 229


def record(kind: int, fragment: bytes, version: bytes = b"\x03\x03") -> bytes:
    """Return a TLS record (RFC 8446 §5.1)."""
    return bytes([kind]) + version + len(fragment).to_bytes(2, "big") + fragment


def datagram_record(kind: int, epoch: int, number: int, fragment: bytes, version: bytes = b"\xfe\xfd") -> bytes:
    """Return a DTLS record (RFC 6347 §4.1)."""
    return bytes([kind]) + version + epoch.to_bytes(2, "big") + number.to_bytes(6, "big") + len(fragment).to_bytes(2, "big") + fragment


def handshake(kind: int, body: bytes) -> bytes:
    """Return a handshake message of TLS (RFC 8446 §4)."""
    return bytes([kind]) + len(body).to_bytes(3, "big") + body


def datagram_handshake(kind: int, sequence: int, body: bytes) -> bytes:
    """Return a handshake message of DTLS in one piece (RFC 6347 §4.2.2)."""
    length = len(body).to_bytes(3, "big")
    return bytes([kind]) + length + sequence.to_bytes(2, "big") + b"\0\0\0" + length + body


def server_hello(suite: int, version: bytes = b"\x03\x03", extensions: bytes = b"") -> bytes:
    """Return the body of a ServerHello (RFC 8446 §4.1.3)."""
    rest = len(extensions).to_bytes(2, "big") + extensions if extensions else b""
    return version + b"s" * 32 + b"\0" + suite.to_bytes(2, "big") + b"\0" + rest
