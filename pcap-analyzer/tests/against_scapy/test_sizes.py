"""The size model and scapy's encoders give the same sizes for random messages."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.contrib import coap as scapy_coap
from scapy.contrib import mqtt as scapy_mqtt

from pcapstat.theory import coap, mqtt

TEXT = st.text(alphabet="abcdefgh", min_size=1, max_size=255)
OPTIONS = st.lists(st.tuples(st.sampled_from(["Uri-Host", "Uri-Path", "Uri-Query", "Location-Path", "Proxy-Scheme"]), TEXT), max_size=6)


@settings(max_examples=200, deadline=None)
@given(token=st.binary(max_size=8), options=OPTIONS, payload=st.binary(max_size=2000))
def test_coap_messages(token: bytes, options: list[tuple[str, str]], payload: bytes) -> None:
    """CoAP with text options of every length that takes extended bytes or not."""
    ordered = sorted(options, key=lambda option: coap.OPTIONS[option[0]][0])
    built = scapy_coap.CoAP(tkl=len(token), token=token, options=[(name, value.encode()) for name, value in ordered])
    built.paymark = b"\xff" if payload else b""
    encoded = bytes(built / payload) if payload else bytes(built)

    assert len(encoded) == coap.message(len(token), options, len(payload)).bytes


@settings(max_examples=200, deadline=None)
@given(topic=TEXT, qos=st.integers(0, 2), payload=st.binary(max_size=20000))
def test_mqtt_publish(topic: str, qos: int, payload: bytes) -> None:
    """PUBLISH of MQTT 3.1.1, over the steps of the Remaining Length."""
    built = scapy_mqtt.MQTT(QOS=qos) / scapy_mqtt.MQTTPublish(topic=topic, msgid=7, value=payload)
    packet = mqtt.Packet("PUBLISH", version=4, topic_bytes=len(topic), qos=qos, payload_bytes=len(payload))

    assert len(bytes(built)) == mqtt.size_of(packet).bytes


@settings(max_examples=100, deadline=None)
@given(topics=st.lists(TEXT, min_size=1, max_size=5))
def test_mqtt_subscribe(topics: list[str]) -> None:
    """SUBSCRIBE with several filters."""
    filters = [scapy_mqtt.MQTTTopicQOS(topic=topic, QOS=1) for topic in topics]
    built = scapy_mqtt.MQTT(type=8) / scapy_mqtt.MQTTSubscribe(msgid=1, topics=filters)
    packet = mqtt.Packet("SUBSCRIBE", version=4, filters_bytes=[len(topic) for topic in topics])

    assert len(bytes(built)) == mqtt.size_of(packet).bytes


@settings(max_examples=100, deadline=None)
@given(client=TEXT, user=st.none() | TEXT, password=st.none() | TEXT)
def test_mqtt_connect(client: str, user: str | None, password: str | None) -> None:
    """CONNECT with and without user name and password."""
    fields: dict[str, object] = {"clientId": client}
    if user is not None:
        fields |= {"usernameflag": 1, "username": user}
    if password is not None:
        fields |= {"passwordflag": 1, "password": password}
    built = scapy_mqtt.MQTT(type=1) / scapy_mqtt.MQTTConnect(protoname="MQTT", protolevel=4, **fields)
    packet = mqtt.Packet(
        "CONNECT",
        version=4,
        client_identifier_bytes=len(client),
        user_name_bytes=None if user is None else len(user),
        password_bytes=None if password is None else len(password),
    )

    assert len(bytes(built)) == mqtt.size_of(packet).bytes
