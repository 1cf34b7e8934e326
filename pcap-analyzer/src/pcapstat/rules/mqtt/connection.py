"""MQTT connections: CONNECT, CONNACK, keep alive, DISCONNECT and AUTH (MQTT 5 §3.1, §3.2, §3.12 to §3.15, §4.12)."""

from __future__ import annotations

from pcapstat.rules.mqtt.state import CLIENT, FAILURE, SERVER, State, first_code, own_bytes, properties, rule
from pcapstat.rules.rule import Message


@rule("MQTT-3.1.0-1", "MQTT 5 §3.1, 3.1.1 §3.1", "error", "the client's first packet is CONNECT")
def connect_is_first(message: Message, state: State) -> str | None:
    """Judge a client's packet before CONNECT."""
    is_early = state.is_whole and not state.has_connect and message["direction"] == CLIENT and message["kind"] != "CONNECT"
    return f"{message['kind']} before CONNECT" if is_early else None


@rule("MQTT-3.1.0-2", "MQTT 5 §3.1, 3.1.1 §3.1", "error", "CONNECT is sent once in a connection")
def connect_is_once(message: Message, state: State) -> str | None:
    """Judge a further CONNECT."""
    return "a further CONNECT" if message["kind"] == "CONNECT" and state.has_connect else None


@rule("MQTT-3.2.0-1", "MQTT 5 §3.2, 3.1.1 §3.2", "error", "the server's first packet, AUTH aside, is CONNACK")
def connack_is_first(message: Message, state: State) -> str | None:
    """Judge a server's packet before CONNACK."""
    is_early = state.is_whole and state.connack_code is None and message["direction"] == SERVER
    return f"{message['kind']} before CONNACK" if is_early and message["kind"] not in {"CONNACK", "AUTH", "DISCONNECT"} else None


@rule("MQTT-3.2.0-2", "MQTT 5 §3.2", "error", "CONNACK is sent once in a connection")
def connack_is_once(message: Message, state: State) -> str | None:
    """Judge a further CONNACK."""
    return "a further CONNACK" if message["kind"] == "CONNACK" and state.connack_code is not None else None


@rule("MQTT-3.2.2-2", "MQTT 5 §3.2.2.1.1, 3.1.1 §3.2.2.2 (MQTT-3.2.2-1)", "error", "a clean start is answered with Session Present 0")
def clean_start_has_no_session(message: Message, state: State) -> str | None:
    """Judge Session Present."""
    is_broken = message["kind"] == "CONNACK" and state.is_clean and message["session_present"]
    return "Session Present 1 although the client asked for a clean start" if is_broken else None


@rule("MQTT-3.2.2-6", "MQTT 5 §3.2.2.1.1, 3.1.1 §3.2.2.2 (MQTT-3.2.2-4)", "error", "a refusal has Session Present 0")
def refusal_has_no_session(message: Message, _: State) -> str | None:
    """Judge Session Present of a refusal."""
    is_broken = message["kind"] == "CONNACK" and first_code(message) and message["session_present"]
    return f"Session Present 1 with code {first_code(message)}" if is_broken else None


@rule("MQTT-3.2.2-7", "MQTT 5 §3.2.2.2, 3.1.1 §3.2.2.3 (MQTT-3.2.2-5)", "error", "behind a refusal the server sends nothing")
def refusal_is_last(message: Message, state: State) -> str | None:
    """Judge a server's packet behind a refusal."""
    refused = state.version == 5 and (state.connack_code or 0) >= 0x80 or state.version in {3, 4} and (state.connack_code or 0) > 0
    return f"{message['kind']} behind a refusal" if refused and message["direction"] == SERVER else None


@rule(
    "MQTT-3.1.2-24",
    "MQTT 5 §3.1.2.11.4 (server), MQTT-3.2.2-15 (client)",
    "error",
    "no packet is larger than the receiver's Maximum Packet Size",
)
def packet_size_is_kept(message: Message, state: State) -> str | None:
    """Judge the packet's length."""
    most = state.peer(message).maximum_packet
    if message["direction"] == CLIENT and state.is_early:
        return None
    return f"{own_bytes(message)} bytes where {most} is the most" if most is not None and own_bytes(message) > most else None


@rule("MQTT-3.1.2-20", "MQTT 5 §3.1.2.10, 3.1.1 §3.1.2.10 (MQTT-3.1.2-23)", "warning", "the client sends something within each keep alive")
def keep_alive_is_kept(message: Message, state: State) -> str | None:
    """Judge the client's silence; the path may have added a little, so a tenth more is let pass."""
    last_ns = state.sides[CLIENT].last_ns
    if message["direction"] != CLIENT or last_ns is None or not state.keep_alive_s:
        return None
    silence_s = (message["time_first_ns"] - last_ns) / 1e9
    return f"silent for {silence_s:.1f} s with a keep alive of {state.keep_alive_s} s" if silence_s > state.keep_alive_s * 1.1 else None


@rule("MQTT-3.12.4-1", "MQTT 5 §3.12.4, 3.1.1 §3.12.4", "warning", "the server answers each PINGREQ")
def ping_is_answered(message: Message, state: State) -> str | None:
    """Judge a PINGREQ a whole keep alive behind one without an answer."""
    if message["kind"] != "PINGREQ" or state.pinged_ns is None or not state.keep_alive_s or not state.sides[SERVER].is_heard:
        return None
    since_s = (message["time_ns"] - state.pinged_ns) / 1e9
    return f"the PINGREQ {since_s:.1f} s before was not answered" if since_s >= state.keep_alive_s else None


@rule("MQTT-3.14.4-1", "MQTT 5 §3.14.4, 3.1.1 §3.14.4 (MQTT-3.14.4-2)", "error", "behind DISCONNECT its sender sends nothing")
def disconnect_is_last(message: Message, state: State) -> str | None:
    """Judge what comes behind DISCONNECT."""
    return f"{message['kind']} behind DISCONNECT" if message["direction"] in state.disconnected else None


def name_of(code: int) -> str:
    """Return a reason code as the standard writes it."""
    return f"0x{code:02X}"


@rule("MQTT-3.1.2-22", "MQTT 5 §3.1.2.10, 3.1.1 §3.1.2.10 (MQTT-3.1.2-24)", "error", "a client silent for 1.5 keep alives is closed")
def silence_ends_the_connection(message: Message, state: State) -> str | None:
    """Judge what the server sends to a client that is silent, DISCONNECT aside; a tenth more is let pass for the path."""
    last_ns = state.sides[CLIENT].last_ns
    is_judged = message["direction"] == SERVER and message["kind"] != "DISCONNECT" and state.is_whole and state.keep_alive_s
    if not is_judged or last_ns is None:
        return None
    silence_s = (message["time_ns"] - last_ns) / 1e9
    is_open = silence_s > 1.5 * state.keep_alive_s * 1.1
    return f"{message['kind']} to a client silent for {silence_s:.1f} s with a keep alive of {state.keep_alive_s} s" if is_open else None


@rule("MQTT-3.1.2-28", "MQTT 5 §3.1.2.11.6", "error", "no Response Information unless the client asked for it")
def response_information_was_asked_for(message: Message, state: State) -> str | None:
    """Judge CONNACK."""
    is_judged = message["kind"] == "CONNACK" and state.has_connect and state.asked is not None
    if not is_judged or (state.asked or {}).get("Request Response Information") == "1":
        return None
    return "Response Information that was not asked for" if "Response Information" in (properties(message) or {}) else None


@rule(
    "MQTT-3.1.2-29",
    "MQTT 5 §3.1.2.11.7",
    "error",
    "with Request Problem Information 0 only PUBLISH, CONNACK and DISCONNECT have Reason String or User Property",
)
def problem_information_is_spared(message: Message, state: State) -> str | None:
    """Judge the server's properties."""
    is_refused = (state.asked or {}).get("Request Problem Information") == "0" and message["direction"] == SERVER
    if not is_refused or message["kind"] in {"PUBLISH", "CONNACK", "DISCONNECT"}:
        return None
    found = sorted({"Reason String", "User Property"} & (properties(message) or {}).keys())
    return f"{message['kind']} with {', '.join(found)}" if found else None


@rule("MQTT-3.1.2-30", "MQTT 5 §3.1.2.11.9", "error", "a client that authenticates sends AUTH or DISCONNECT only until CONNACK")
def authentication_goes_first(message: Message, state: State) -> str | None:
    """Judge what a client sends before CONNACK."""
    is_judged = state.connack_code is None and message["direction"] == CLIENT and "Authentication Method" in (state.asked or {})
    is_broken = is_judged and state.is_whole and message["kind"] not in {"CONNECT", "AUTH", "DISCONNECT"}
    return f"{message['kind']} before CONNACK" if is_broken else None


@rule("MQTT-3.2.2-16", "MQTT 5 §3.2.2.3.7 (also MQTT-3.1.3-6, -7)", "error", "a client without an identifier is told the one it is given")
def identifier_is_assigned(message: Message, state: State) -> str | None:
    """Judge a CONNACK to a CONNECT with an empty client identifier."""
    is_judged = message["kind"] == "CONNACK" and state.version == 5 and state.client_identifier == "" and first_code(message) < FAILURE
    told = properties(message)
    is_broken = is_judged and told is not None and "Assigned Client Identifier" not in told
    return "no Assigned Client Identifier" if is_broken else None


@rule("MQTT311-3.1.3-7", "3.1.1 §3.1.3.1", "error", "a client without an identifier asks for a clean session")
def unnamed_client_is_clean(message: Message, _: State) -> str | None:
    """Judge CONNECT of MQTT 3.1.1."""
    is_broken = (
        message["kind"] == "CONNECT" and message["version"] == 4 and message["client_identifier"] == "" and not message["clean_start"]
    )
    return "an empty client identifier with Clean Session 0" if is_broken else None


@rule("MQTT311-3.1.3-8", "3.1.1 §3.1.3.1", "error", "a client without an identifier and with Clean Session 0 is refused with code 2")
def unnamed_session_is_refused(message: Message, state: State) -> str | None:
    """Judge CONNACK of MQTT 3.1.1."""
    is_judged = message["kind"] == "CONNACK" and state.version == 4 and state.client_identifier == "" and not state.is_clean
    return f"code {first_code(message)} where 2 is due" if is_judged and first_code(message) != 2 else None


@rule("MQTT311-3.1.2-22", "3.1.1 §3.1.2.9", "error", "no password without a user name")
def password_has_a_user_name(message: Message, _: State) -> str | None:
    """Judge CONNECT of MQTT 3.1.1."""
    is_broken = message["kind"] == "CONNECT" and message["version"] == 4 and message["has_password"] and message["user_name"] is None
    return "a password without a user name" if is_broken else None


@rule("MQTT-3.14.0-1", "MQTT 5 §3.14", "error", "the server sends no DISCONNECT before CONNACK")
def disconnect_is_behind_connack(message: Message, state: State) -> str | None:
    """Judge a server's DISCONNECT."""
    is_early = message["kind"] == "DISCONNECT" and message["direction"] == SERVER and state.connack_code is None
    return "DISCONNECT before CONNACK" if is_early and state.version == 5 and state.is_whole else None


@rule("MQTT-3.14.2-2", "MQTT 5 §3.14.2.2.2", "error", "a server's DISCONNECT has no Session Expiry Interval")
def server_sets_no_expiry(message: Message, _: State) -> str | None:
    """Judge a server's DISCONNECT."""
    is_judged = message["kind"] == "DISCONNECT" and message["direction"] == SERVER
    return "Session Expiry Interval" if is_judged and "Session Expiry Interval" in (properties(message) or {}) else None


@rule("MQTT-3.14.2-expiry", "MQTT 5 §3.14.2.2.2 (without a number)", "error", "DISCONNECT begins no expiry that CONNECT set to 0")
def expiry_is_not_begun_late(message: Message, state: State) -> str | None:
    """Judge a client's DISCONNECT."""
    if message["kind"] != "DISCONNECT" or message["direction"] != CLIENT or not state.has_connect or state.asked is None:
        return None
    told = (properties(message) or {}).get("Session Expiry Interval", "0")
    is_broken = told != "0" and state.asked.get("Session Expiry Interval", "0") == "0"
    return f"Session Expiry Interval {told} where CONNECT had 0" if is_broken else None


@rule("MQTT-4.12.0-2", "MQTT 5 §4.12 (also MQTT-4.12.0-3)", "error", "AUTH before CONNACK has the code 0x18 (continue)")
def authentication_goes_on(message: Message, state: State) -> str | None:
    """Judge AUTH packets of the first authentication."""
    is_judged = message["kind"] == "AUTH" and state.has_connect and state.connack_code is None
    return f"AUTH with {name_of(first_code(message))}" if is_judged and first_code(message) != 0x18 else None


@rule("MQTT-4.12.0-5", "MQTT 5 §4.12 (also MQTT-4.12.1-1)", "error", "AUTH and CONNACK have the authentication method of CONNECT")
def method_is_kept(message: Message, state: State) -> str | None:
    """Judge the method; an AUTH that ends here and says nothing else may be without properties (§3.15.2.1)."""
    method, told = (state.asked or {}).get("Authentication Method"), properties(message)
    is_judged = message["kind"] == "AUTH" or (message["kind"] == "CONNACK" and first_code(message) < FAILURE)
    if method is None or told is None or not is_judged or (message["kind"] == "AUTH" and not told and first_code(message) == 0):
        return None
    found = told.get("Authentication Method")
    return None if found == method else f"authentication method {found!r} where CONNECT had {method!r}"


@rule("MQTT-4.12.0-6", "MQTT 5 §4.12 (also MQTT-4.12.0-7)", "error", "no AUTH and no method where CONNECT had none")
def authentication_was_asked_for(message: Message, state: State) -> str | None:
    """Judge AUTH, and CONNACK's properties."""
    if not state.has_connect or state.asked is None or "Authentication Method" in state.asked:
        return None
    if message["kind"] == "AUTH":
        return "AUTH without an authentication method in CONNECT"
    is_broken = message["kind"] == "CONNACK" and "Authentication Method" in (properties(message) or {})
    return "an authentication method where CONNECT had none" if is_broken else None


@rule(
    "MQTT-3.1.4-3",
    "MQTT 5 §3.1.4, 3.1.1 §3.1.4 (MQTT-3.1.4-2)",
    "error",
    "a client accepted in a new connection is not served in the old one",
)
def old_connection_is_left(message: Message, state: State) -> str | None:
    """Judge answers to what the client sent in the old connection after the server had accepted it in the new one."""
    is_late = message["direction"] == SERVER and (message["kind"], message["message_id"]) in state.late
    return f"{message['kind']} to a client that was accepted in another connection before it asked" if is_late else None
