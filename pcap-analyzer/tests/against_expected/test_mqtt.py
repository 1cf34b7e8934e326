"""MQTT control packets: the counts of Suricata's test filters, and the lines of Zeek's mqtt logs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from places import SHARED

import pcapstat

Row = dict[str, Any]
LEVELS = {"at most once": 0, "at least once": 1, "exactly once": 2}


def messages(path: Path) -> list[Row]:
    """Return the MQTT messages of a capture with payloads and user names."""
    capture = pcapstat.open(path, engine="native", show_payload=True, show_secrets=True)
    return [row for row in pa.table(capture.messages).to_pylist() if row["protocol"] == "mqtt"]


def codes(row: Row) -> list[int]:
    """Return the reason codes of a message."""
    return [int(code) for code in (row["reason_codes"] or "").split(",") if code]


FIELDS: dict[str, Callable[[Row], Any]] = {
    "protocol_string": lambda row: "MQIsdp" if row["version"] == 3 else "MQTT",
    "protocol_version": lambda row: row["version"],
    "flags.username": lambda row: row["user_name"] is not None,
    "flags.password": lambda row: bool(row["has_password"]),
    "flags.will": lambda row: row["will_topic"] is not None,
    "flags.clean_session": lambda row: row["clean_start"],
    "client_id": lambda row: row["client_identifier"] or "",
    "username": lambda row: row["user_name"],
    "will.topic": lambda row: row["will_topic"],
    "session_present": lambda row: row["session_present"],
    "return_code": lambda row: (codes(row) or [0])[0],
    "reason_code": lambda row: (codes(row) or [0])[0],
    "reason_codes": codes,
    "qos_granted": codes,
    "message_id": lambda row: row["message_id"],
    "message": lambda row: row["payload"].decode(errors="replace") if row["payload"] is not None else None,
    "topic": lambda row: row["topic_name"],
}
OF_PUBLISH = {"qos", "dup", "retain"}
"""Flags that only a PUBLISH has here; the others' are fixed (MQTT 5 §2.1.3)."""


NOT_COMPARED = {("connect", "properties.authentication_data"), ("disconnect", "reason_code")}
"""Authentication data is a secret, of which the length is shown. Of a DISCONNECT with a remaining length of 1 Suricata logs reason code 0;
byte and tshark say 4 (MQTT 5 §3.14.2.1)."""


def topics(row: Row, listed: list[Any]) -> bool:
    """Whether a SUBSCRIBE or UNSUBSCRIBE names these topic filters."""
    wanted = [f"{entry['topic']} QoS {entry['qos']}" if isinstance(entry, dict) else entry for entry in listed]
    return (row["topic_filters"] or "").split("\n") == wanted


def fits(row: Row, field: str, value: Any) -> bool | None:
    """Whether a message has what Suricata's filter says; None where we have no such column."""
    if field in OF_PUBLISH:
        return bool(row["kind"] != "PUBLISH" or row[field] == value)
    if field == "topics":
        return topics(row, value)
    if field.startswith("properties."):
        name = field.partition(".")[2].replace("_", " ")
        return f"{name}: {value}".lower() in (row["properties"] or "").lower() if "userprop" not in name else None
    return None if field not in FIELDS else bool(FIELDS[field](row) == value)


def checks() -> list[tuple[str, str, dict[str, Any], int]]:
    """Return capture, kind, fields and count of each filter about the log of MQTT."""
    found = []
    for path in sorted((SHARED / "suricata-verify").glob("mqtt*__input.pcap")):
        told = path.parent / "expected" / path.name.removesuffix("__input.pcap") / "test.yaml"
        for check in yaml.safe_load(told.read_text())["checks"]:
            match = check.get("filter", {}).get("match", {})
            if match.get("event_type") == "mqtt":
                fields = {key.partition(".")[2]: value for key, value in match.items() if key.startswith("mqtt.")}
                kinds = {key.partition(".")[0] for key in fields}
                if len(kinds) == 1:
                    (kind,) = kinds
                    found.append((path.name, kind, inner(kind, fields), check["filter"]["count"]))
    return found


def inner(kind: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields without the name of their kind."""
    named = {key.partition(".")[2]: value for key, value in fields.items()}
    return {name: value for name, value in named.items() if (kind, name) not in NOT_COMPARED}


def test_suricata_counts_the_same_messages() -> None:
    """Each filter of the tests finds as many messages as Suricata logs."""
    wrong, compared = [], 0
    rows = {name: messages(SHARED / "suricata-verify" / name) for name in {name for name, *_ in checks()}}
    for name, kind, fields, count in checks():
        of_kind = [row for row in rows[name] if row["kind"].lower() == kind]
        found = sum(all(fits(row, field, value) is not False for field, value in fields.items()) for row in of_kind)
        compared += len(fields)
        if found != count:
            wrong.append((name, kind, fields, count, found))
    assert not wrong
    assert compared > 500 or not SHARED.is_dir()


def log(name: str) -> list[dict[str, str]]:
    """Return the lines of one of Zeek's logs as it was made of mqtt.pcap."""
    path = SHARED / "zeek" / "expected" / "scripts.base.protocols.mqtt.mqtt" / name
    lines = path.read_text().splitlines() if path.is_file() else []
    names = next((line.split("\t")[1:] for line in lines if line.startswith("#fields")), [])
    return [dict(zip(names, line.split("\t"), strict=True)) for line in lines if not line.startswith("#")]


@pytest.fixture(scope="module")
def zeek() -> list[Row]:
    """Return the messages of Zeek's capture."""
    path = SHARED / "zeek" / "mqtt.pcap"
    return messages(path) if path.is_file() else []


def test_zeek_logs_the_same_publications(zeek: list[Row]) -> None:
    """Direction, RETAIN, QoS, topic, payload and its length of every PUBLISH."""
    ours = Counter(
        (row["direction"] == "c2s", row["retain"], row["qos"], row["topic_name"], (row["payload"] or b"").decode(), row["payload_bytes"])
        for row in zeek
        if row["kind"] == "PUBLISH"
    )
    theirs = Counter(
        (line["from_client"] == "T", line["retain"] == "T", LEVELS[line["qos"]], line["topic"], line["payload"], int(line["payload_len"]))
        for line in log("mqtt_publish.log")
    )
    assert ours == theirs
    assert theirs or not SHARED.is_dir()


def test_zeek_logs_the_same_connections_and_subscriptions(zeek: list[Row]) -> None:
    """Client identifiers with their Will topic; topic filters."""
    connects = Counter((row["client_identifier"] or "-", row["will_topic"] or "-") for row in zeek if row["kind"] == "CONNECT")
    assert connects == Counter(
        (line["client_id"] if line["client_id"] != "(empty)" else "-", line["will_topic"]) for line in log("mqtt_connect.log")
    )
    filters = Counter(
        line.partition(" QoS ")[0]
        for row in zeek
        if row["kind"] in {"SUBSCRIBE", "UNSUBSCRIBE"}
        for line in (row["topic_filters"] or "").split("\n")
    )
    assert filters == Counter(name for line in log("mqtt_subscribe.log") for name in line["topics"].split(","))
