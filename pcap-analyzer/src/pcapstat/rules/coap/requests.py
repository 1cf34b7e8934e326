"""CoAP's requests and responses: tokens, options, payloads, codes (RFC 7252 §5, §8.2, §12)."""

from __future__ import annotations

from pcapstat.rules.coap.state import VALID, State, is_group, is_request, is_response, names, options, other, rule
from pcapstat.rules.rule import Message
from pcapstat.theory import coap

GET, DELETE = 1, 4
EXPERIMENTAL = 65_000
"""Option numbers and Content-Formats from here on are for experiments (RFC 7252 §12.2, §12.3)."""
RESERVED_CLASSES, SIGNALING_CLASS = {1, 3, 6, 7}, 7
"""Over TCP class 7 is that of signaling (RFC 8323 §5.1)."""
NAMES = {str(option.number): name for name, option in coap.OPTIONS.items()}
"""By number, as text: the options that have a name."""
ONCE = frozenset(
    {
        *("Uri-Host", "Uri-Port", "Content-Format", "Max-Age", "Accept", "Size1", "Proxy-Uri", "Proxy-Scheme", "If-None-Match"),
        *("Observe", "OSCORE", "Hop-Limit", "Block1", "Block2", "Size2", "No-Response", "Echo", "EDHOC"),
    }
)
"""Options that may be there once (RFC 7252 §5.10, RFC 7641 §2, RFC 7959 §2.1, and the others' definitions)."""
OF_URI = ("Uri-Host", "Uri-Port", "Uri-Path", "Uri-Query")
OF_REQUESTS = frozenset({*OF_URI, "If-Match", "If-None-Match", "Accept", "Proxy-Uri", "Proxy-Scheme"})
OF_RESPONSES = frozenset({"Location-Path", "Location-Query", "Max-Age"})
"""Options that RFC 7252 defines for requests only and for responses only (§5.8, §5.9, §5.10)."""


@rule("RFC7252-5.3.1-token", "RFC 7252 §5.3.1", "error", "a response echoes the token of a request")
def token_is_echoed(message: Message, state: State) -> str | None:
    """Judge a response's token: piggybacked ones whose request is known, and those whose request would be. Who observes asked long ago."""
    if not is_response(message):
        return None
    is_piggybacked = message["kind"] == "ACK" and (other(message["direction"]), message["message_id"]) in state.sent
    is_judged = is_piggybacked or (state.is_known_since(message) and (message["observe"] is None or message["transport"] == "tcp"))
    is_asked = (message["token"] or "") in state.tokens[other(message["direction"])]
    return f"no request had the token {message['token']!r}" if is_judged and not is_asked else None


@rule("RFC7252-5.3.2-piggybacked", "RFC 7252 §5.3.2", "error", "a piggybacked response has the token of the request that it acknowledges")
def piggybacked_token_fits(message: Message, state: State) -> str | None:
    """Judge the token of a response in an Acknowledgement."""
    request = state.sent.get((other(message["direction"]), message["message_id"])) if message["kind"] == "ACK" else None
    if request is None or not is_response(message) or not 0 < request.code < 32:
        return None
    token = message["token"] or ""
    return None if token == request.token else f"token {token!r} where the request had {request.token!r}"


@rule("RFC7252-5.4.5-repeated", "RFC 7252 §5.4.5", "error", "an option that is not repeatable is there once")
def option_is_once(message: Message, _: State) -> str | None:
    """Judge repeated options."""
    found = names(message)
    twice = sorted(name for name in ONCE if found.count(name) > 1)
    return f"several {', '.join(twice)}" if twice else None


@rule("RFC7252-5.4-defined", "RFC 7252 §5.4", "error", "options of requests are in requests, those of responses in responses")
def option_is_defined_here(message: Message, _: State) -> str | None:
    """Judge options that are defined for the other kind of message only."""
    strange = OF_RESPONSES if is_request(message) else OF_REQUESTS if is_response(message) else frozenset()
    found = sorted(strange & set(names(message)))
    return f"{', '.join(found)} in a {'request' if is_request(message) else 'response'}" if found else None


@rule("RFC7252-5.5-payload", "RFC 7252 §5.5, §5.8.1, §5.8.4", "error", "GET and DELETE have no payload")
def method_has_no_payload(message: Message, _: State) -> str | None:
    """Judge the payload of methods that define none; of OSCORE the payload is what it protects."""
    is_broken = message["code"] in {GET, DELETE} and message["payload_bytes"] and not message["is_oscore"]
    return f"{message['payload_bytes']} bytes of payload with {message['variant']}" if is_broken else None


@rule("RFC7252-5.9.1.3-valid", "RFC 7252 §5.9.1.3", "error", "2.03 has an ETag and no payload")
def valid_has_a_tag(message: Message, _: State) -> str | None:
    """Judge 2.03 (Valid)."""
    if message["code"] != VALID or message["is_oscore"]:
        return None
    if message["payload_bytes"]:
        return f"2.03 with {message['payload_bytes']} bytes of payload"
    is_known = bool(names(message)) or not message["options"]
    return "2.03 without ETag" if is_known and "ETag" not in names(message) else None


@rule(
    "RFC7252-5.10-length", "RFC 7252 §5.10 and each option's section", "error", "an option's value has a length that its definition allows"
)
def option_length_is_allowed(message: Message, _: State) -> str | None:
    """Judge options with a number that has a name: the decoder leaves the name out where the length is wrong."""
    broken = [f"{NAMES[name]} of {len(value) // 2} bytes" for name, value in options(message) if name in NAMES]
    return ", ".join(broken) or None


@rule("RFC7252-5.10.1-dots", "RFC 7252 §5.10.1, §5.10.7", "error", "a segment of a path is not . or ..")
def path_is_resolved(message: Message, _: State) -> str | None:
    """Judge Uri-Path and Location-Path."""
    broken = [f"{name} {value!r}" for name, value in options(message) if name in {"Uri-Path", "Location-Path"} and value in {".", ".."}]
    return ", ".join(broken) or None


@rule("RFC7252-5.10.2-proxy", "RFC 7252 §5.10.2", "error", "beside Proxy-Uri there are no Uri options")
def proxy_uri_is_alone(message: Message, _: State) -> str | None:
    """Judge a request to a proxy."""
    found = set(names(message))
    beside = sorted(found & set(OF_URI))
    return f"Proxy-Uri and {', '.join(beside)}" if "Proxy-Uri" in found and beside else None


@rule("RFC7252-5.10.6.1-etag", "RFC 7252 §5.10.6.1", "error", "a response has one ETag at most")
def response_has_one_tag(message: Message, _: State) -> str | None:
    """Judge ETag in responses; requests may have several."""
    count = names(message).count("ETag") if is_response(message) else 0
    return f"{count} ETag options" if count > 1 else None


@rule("RFC7252-8.2.1-etag", "RFC 7252 §8.2.1", "error", "a GET to a group has no ETag")
def group_is_asked_without_tag(message: Message, _: State) -> str | None:
    """Judge a GET to a multicast address."""
    return "ETag in a GET to a group" if message["code"] == GET and is_group(message) and "ETag" in names(message) else None


@rule("RFC7252-12.1-class", "RFC 7252 §12.1 (§4.2)", "error", "a code is not of a reserved class")
def code_class_is_known(message: Message, _: State) -> str | None:
    """Judge codes."""
    code = message["code"] or 0
    is_signaling = message["transport"] == "tcp" and code >> 5 == SIGNALING_CLASS
    return f"code {code >> 5}.{code & 31:02d}" if code >> 5 in RESERVED_CLASSES and not is_signaling else None


@rule("RFC7252-12.2-experiment", "RFC 7252 §12.2, §12.3", "note", "option numbers and Content-Formats from 65000 on are for experiments")
def experiment_is_told(message: Message, _: State) -> str | None:
    """Judge numbers that are not for use in operation."""
    found = [f"option {name}" for name in names(message) if name.isdecimal() and int(name) >= EXPERIMENTAL]
    found += [f"Content-Format {message['content_format']}"] if (message["content_format"] or 0) >= EXPERIMENTAL else []
    return ", ".join(found) or None
