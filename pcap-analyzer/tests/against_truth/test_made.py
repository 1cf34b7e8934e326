"""The truths of ../shared/captures/made/README.md, where the folder is beside the checkout."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from places import MADE, SHARED

import pcapstat


def rows(name: str, table: str, **options: Any) -> list[dict[str, Any]]:
    """Rows of a table of a made capture; none where the captures are not at hand."""
    if not SHARED.is_dir():
        return []
    found: list[dict[str, Any]] = pa.table(pcapstat.open(MADE / name, **options).table(table)).to_pylist()
    return found


def ms(time_ns: int | None) -> float | None:
    """Nanoseconds as milliseconds."""
    return None if time_ns is None else round(time_ns / 1e6, 3)


def agree(actual: Any, expected: Any) -> None:
    """Hold what was found to the truth; where the captures are not beside the checkout there is nothing to hold."""
    assert actual == expected or not SHARED.is_dir(), f"found {actual}, truth {expected}"


def test_nine_situations_of_coap() -> None:
    """Piggybacked, separate, NON, empty token, sent again, Observe, message ID used again, response before ACK, multicast."""
    ports = {row["session"]: row["client_port"] for row in rows("coap.pcap", "sessions")}
    found: dict[int, list[tuple[str, float | None, float | None]]] = {}
    for row in sorted(rows("coap.pcap", "exchanges"), key=lambda row: row["exchange"]):
        found.setdefault(ports[row["session"]], []).append((row["kind"], ms(row["ack_rtt_ns"]), ms(row["rtt_ns"])))
    expected = {
        40001: [("GET", 10.0, 10.0)],
        40002: [("GET", 5.0, 500.0)],
        40003: [("GET", None, 20.0)],
        40004: [("GET", 30.0, 30.0)],
        40005: [("GET", 2200.0, 2200.0)],
        40006: [("observe", 10.0, 10.0), *[("notification", None, None)] * 3],
        40007: [("GET", 10.0, 10.0), ("GET", 40.0, 40.0)],
        40008: [("GET", 20.0, 20.0)],
        40009: [("GET", None, 100.0)],
    }

    agree(found, expected)


def test_four_publish_in_split_and_repeated_segments() -> None:
    """mqtt.pcap: four PUBLISH, not five; three QoS 1 flows, one QoS 2 flow; wire topic lengths 3, 0, 0, 3."""
    publishes = [row for row in rows("mqtt.pcap", "messages") if row["kind"] == "PUBLISH"]
    kinds = sorted(row["kind"] for row in rows("mqtt.pcap", "exchanges") if row["kind"].startswith("PUBLISH"))

    agree([row["payload_bytes"] for row in publishes], [3, 3, 5, 4])
    agree([row["topic_name_bytes"] for row in publishes], [3, 0, 0, 3])
    agree([row["topic_name"] for row in publishes], ["a/b", "a/b", "a/b", "q/2"])
    agree(kinds, ["PUBLISH QoS 1"] * 3 + ["PUBLISH QoS 2"])


def test_segments_out_of_order_and_cut_remaining_lengths() -> None:
    """ooo.pcap holds three PUBLISH; remaining-length-split.pcap 20 PUBLISH and 20 PUBACK, where tshark 4.0.17 loses 15."""
    split = [row["kind"] for row in rows("remaining-length-split.pcap", "messages")]

    agree([row["kind"] for row in rows("ooo.pcap", "messages")].count("PUBLISH"), 3)
    agree((split.count("PUBLISH"), split.count("PUBACK")), (20, 20))


def test_an_inferred_version_is_said() -> None:
    """nocon.pcap: the payload is "one" and the version is inferred, with a note."""
    messages = rows("nocon.pcap", "messages", show_payload=True)

    agree([row["payload"] for row in messages if row["kind"] == "PUBLISH"], [b"one"])
    agree("version-unknown" in [row["note"] for row in rows("nocon.pcap", "notes")], True)


def test_decode_as_names_a_port() -> None:
    """port.pcap: MQTT on 18830 is found where the user says so, and by its bytes with a note."""
    agree({row["found_by"] for row in rows("port.pcap", "sessions", decode_as=["tcp.port==18830,mqtt"])}, {"decode-as"})
    agree({row["found_by"] for row in rows("port.pcap", "sessions")}, {"heuristic"})


def test_fragments_and_interleaved_transfers() -> None:
    """frag.pcap: one PUT of 2,000 bytes over two frames; two transfers of 48 bytes kept apart."""
    put = [row for row in rows("frag.pcap", "messages") if row["variant"] == "PUT"]
    transfers = [row["payload_bytes"] for row in rows("frag.pcap", "exchanges") if row["kind"] == "GET block-wise"]

    agree([(row["payload_bytes"], len(row["frames"])) for row in put], [(2000, 2)])
    agree(transfers, [48, 48])


def test_padding_is_no_payload() -> None:
    """pad.pcap: a GET of 5 bytes in a frame of 60, 13 bytes of padding."""
    sizes = [(row["frame_bytes"], row["padding_bytes"], row["payload_bytes"]) for row in rows("pad.pcap", "messages")]

    agree(sizes, [(60, 13, 0)])


def test_copies_of_the_capture_are_no_messages() -> None:
    """dup.pcap: each packet twice; as many messages as copies, and nothing was sent again."""
    messages, sessions = rows("dup.pcap", "messages"), rows("dup.pcap", "sessions")

    agree(len(messages) > 0 and len(messages) == sum(row["captured_twice"] for row in sessions), True)
    agree([row["is_retransmission"] for row in messages].count(True), 0)


def test_sizes_do_not_depend_on_the_snap_length() -> None:
    """snap.pcap and snap40.pcap: the same frames whole and cut at 40 bytes."""
    whole, cut = (rows(name, "captures") for name in ("snap.pcap", "snap40.pcap"))

    assert [row["frame_bytes"] for row in whole] == [row["frame_bytes"] for row in cut]
