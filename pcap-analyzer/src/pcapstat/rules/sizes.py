"""Observed, specified and minimal size of each message: what its fields make by the standard, and the least that means the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pcapstat.errors import UsageError
from pcapstat.rules.mqtt.state import REQUESTS, filters
from pcapstat.rules.rule import Message
from pcapstat.theory import coap, mqtt

ACKS = {"PUBACK", "PUBREC", "PUBREL", "PUBCOMP", "DISCONNECT", "AUTH"}
COAP = {"udp": coap.message, "tcp": coap.message_over_tcp}


@dataclass(frozen=True)
class Sizes:
    """Sizes of a message in bytes, without what carries it; none where its columns do not tell all of it (CONNECT with secrets)."""

    file: str
    session: int | None
    frame: int
    kind: str
    observed: int
    specified: int | None
    minimal: int | None


def sizes(messages: Iterator[Message]) -> Iterator[Sizes]:
    """Return the sizes of CoAP messages and MQTT control packets, rows of the table messages.

    Of CoAP in WebSockets none are known: its header bytes hold the WebSocket frame's too.
    """
    in_websockets = set()
    for message in messages:
        if (message["protocol"], message["variant"]) == ("http", "101"):
            in_websockets.add(message["session"])
        if message["protocol"] == "coap" and message["session"] in in_websockets:
            continue
        if message["protocol"] in {"coap", "mqtt"} and not message["malformed"] and not message["is_truncated"]:
            observed = observed_bytes(message)
            specified, minimal = by_standard(message)
            if specified is not None and specified > observed:
                # the columns stand for other bytes than the message has: U+FFFD for what is no text, say
                specified = minimal = None
            kind = f"{message['kind']} {message['variant']}".strip()
            yield Sizes(message["file"] or "", message["session"], message["frame"], kind, observed, specified, minimal)


def by_standard(message: Message) -> tuple[int | None, int | None]:
    """Return specified and minimal size; none where the message says what its standard does not allow, or its columns are ambiguous."""
    try:
        return of_coap(message) if message["protocol"] == "coap" else of_mqtt(message)
    except UsageError:
        return None, None


def observed_bytes(message: Message) -> int:
    """Return a message's own bytes. Header bytes hold a WebSocket frame's too, so that a control packet's Remaining Length is asked."""
    remaining = message["remaining_length"]
    if remaining is not None:
        return 1 + mqtt.variable_bytes(remaining) + int(remaining)
    return int(message["header_bytes"] + message["option_bytes"] + message["payload_bytes"] + message["opaque_bytes"])


def of_coap(message: Message) -> tuple[int | None, int | None]:
    """Return specified and minimal size of a CoAP message: the least has an empty token. What OSCORE protects is not judged."""
    if message["is_oscore"] or message["transport"] not in COAP or (message["transport"] == "tcp" and message["code"] is None):
        return None, None
    if message["transport"] == "udp" and message["code"] == 0:
        return 4, 4
    if message["transport"] == "tcp" and (message["code"] or 0) >= 224:
        return None, None
    options = coap.from_text(message["options"])
    token = len(message["token"] or "") // 2
    size_of = COAP[message["transport"]]
    return size_of(token, options, message["payload_bytes"]).bytes, size_of(0, options, message["payload_bytes"]).bytes


def of_mqtt(message: Message) -> tuple[int | None, int | None]:
    """Return specified and minimal size of a control packet: the least leaves a reason code of 0 out."""
    kind = message["kind"]
    if kind == "CONNECT" or kind not in mqtt.PACKETS:
        return None, None
    codes = [code for code in (message["reason_codes"] or "").split(",") if code]
    given = filters(message) if kind in REQUESTS else []
    if given is None:
        return None, None

    def packed(has_reason_code: bool) -> int:
        packet = mqtt.Packet(
            kind,
            version=5 if message["option_bytes"] or has_reason_code else 4,
            properties=mqtt.from_text(message["properties"]),
            topic_bytes=message["topic_name_bytes"] or 0,
            qos=message["qos"] or 0,
            payload_bytes=message["payload_bytes"],
            filters_bytes=[len(name.encode()) for name, _ in given],
            has_reason_code=has_reason_code,
            reason_codes=len(codes),
        )
        return mqtt.size_of(packet).bytes

    has_code = kind in ACKS and bool(codes)
    # a property length of 0 behind the reason code may be there (MQTT 5 §3.4.2.2.1)
    specified = packed(has_code) + (1 if has_code and message["option_bytes"] and not message["properties"] else 0)
    return specified, packed(has_code and (codes[0] != "0" or bool(message["properties"])))
