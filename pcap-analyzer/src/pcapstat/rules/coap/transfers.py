"""CoAP's observation and block-wise transfers (RFC 7641, RFC 7959)."""

from __future__ import annotations

from pcapstat.rules.coap.state import (
    ACK_TIMEOUT_S,
    SECOND_NS,
    VALID,
    Sent,
    State,
    asked_block,
    block_bytes,
    is_notification,
    is_request,
    is_response,
    is_success,
    other,
    rule,
)
from pcapstat.rules.rule import Message

DAY_NS = 24 * 3600 * SECOND_NS


@rule("RFC7641-3.4-order", "RFC 7641 §3.4, §4.4", "warning", "notifications have increasing sequence numbers")
def notifications_are_newer(message: Message, state: State) -> str | None:
    """Judge Observe values by the comparison of §3.4: modulo 2^24, anything goes after 128 s. Over TCP they have no meaning."""
    is_judged = is_notification(message) and not message["is_retransmission"] and message["transport"] == "udp"
    before = state.observed.get(message["token"] or "") if is_judged else None
    if before is None:
        return None
    value, time_ns = before
    now = message["observe"]
    is_newer = (value < now and now - value < 2**23) or (value > now and value - now > 2**23) or message["time_ns"] > time_ns + 128 * 10**9
    return None if is_newer else f"Observe {now} behind {value}: old, out of order on the path, or not counted on"


@rule("RFC7641-4.2-format", "RFC 7641 §4.2", "error", "a notification has the Content-Format of the first response")
def notification_keeps_format(message: Message, state: State) -> str | None:
    """Judge Content-Format; a 2.03 has none, for it has no representation (RFC 7252 §5.9.1.3)."""
    token = message["token"] or ""
    is_judged = is_notification(message) and message["code"] != VALID and token in state.formats
    if not is_judged or message["content_format"] == state.formats[token]:
        return None
    return f"Content-Format {message['content_format']} where the first had {state.formats[token]}"


@rule("RFC7959-2.2-szx", "RFC 7959 §2.2", "error", "a block size exponent of 7 is reserved")
def szx_is_not_reserved(message: Message, _: State) -> str | None:
    """Judge SZX."""
    return "SZX 7" if message["transport"] == "udp" and 7 in {message["block1_szx"], message["block2_szx"]} else None


@rule("RFC7959-2.3-size", "RFC 7959 §2.3", "error", "a block that is not the last has the size that its option says")
def block_is_full(message: Message, _: State) -> str | None:
    """Judge the payload of a block with the more flag."""
    is_asked = is_request(message)
    more, szx = (message["block1_more"], message["block1_szx"]) if is_asked else (message["block2_more"], message["block2_szx"])
    if not more or szx is None or szx == 7 or message["is_truncated"]:
        return None
    size = 16 << szx
    return None if message["payload_bytes"] == size else f"{message['payload_bytes']} bytes in a block of {size}"


@rule("RFC7641-3.2-error", "RFC 7641 §3.2, §4.2", "error", "a response that is no success has no Observe option")
def error_ends_observation(message: Message, _: State) -> str | None:
    """Judge Observe in responses of classes 4 and 5; of OSCORE the code in sight is not the response's."""
    is_broken = is_response(message) and not is_success(message) and message["observe"] is not None and not message["is_oscore"]
    return f"Observe in {message['variant']}" if is_broken else None


@rule("RFC7641-3.6-reset", "RFC 7641 §3.6, §4.5", "error", "a client that rejected a notification is sent no more of them")
def rejected_observer_is_removed(message: Message, state: State) -> str | None:
    """Judge a new notification ACK_TIMEOUT and more behind the Reset, which may take that long to arrive."""
    reset_ns = state.reset_ns.get(message["token"] or "")
    if reset_ns is None or not is_notification(message) or message["is_retransmission"]:
        return None
    since_s = (message["time_ns"] - reset_ns) / SECOND_NS
    return f"a notification {since_s:.3f} s behind the Reset" if since_s > ACK_TIMEOUT_S else None


@rule("RFC7641-4.5-confirmable", "RFC 7641 §4.5", "error", "a notification is Confirmable every 24 hours at least")
def observer_is_checked(message: Message, state: State) -> str | None:
    """Judge a Non-confirmable notification."""
    since_ns = state.confirmed_ns.get(message["token"] or "")
    if since_ns is None or message["kind"] != "NON" or not is_notification(message) or not state.is_whole:
        return None
    hours = (message["time_ns"] - since_ns) / DAY_NS * 24
    return f"no Confirmable notification for {hours:.1f} hours" if hours > 24 else None


@rule("RFC7959-2.2-last", "RFC 7959 §2.2", "error", "the last block is not larger than the size that its option says")
def last_block_fits(message: Message, _: State) -> str | None:
    """Judge the payload of a block without the more flag."""
    more, szx = (message["block1_more"], message["block1_szx"]) if is_request(message) else (message["block2_more"], message["block2_szx"])
    is_body = is_request(message) or is_success(message)
    if more or szx is None or szx == 7 or not is_body or message["payload_bytes"] <= block_bytes(szx):
        return None
    return f"{message['payload_bytes']} bytes in a block of {block_bytes(szx)}"


@rule("RFC7959-2.4-more", "RFC 7959 §2.2, §2.4", "error", "Block2 in a request has the more flag 0")
def asked_block_has_no_more(message: Message, _: State) -> str | None:
    """Judge Block2 in requests; in Q-Block2 the flag has a meaning (RFC 9177 §4.4)."""
    is_broken = is_request(message) and message["block2_more"] and not message["is_q_block"]
    return f"Block2 {message['block2_num']} with the more flag" if is_broken else None


def request_of(message: Message, state: State) -> Sent | None:
    """Return the request that a response of class 2 answers: piggybacked by its Message ID, separate by its token, the first time."""
    requester, token = other(message["direction"]), message["token"] or ""
    if message["kind"] == "ACK":
        request = state.sent.get((requester, message["message_id"]))
    else:
        is_judged = state.is_whole and not is_notification(message)
        request = state.requests.get((requester, token)) if is_judged else None
    is_pair = request is not None and 0 < request.code < 32 and is_success(message) and not message["is_q_block"]
    return request if is_pair else None


@rule("RFC7959-2.4-offset", "RFC 7959 §2.4", "error", "the block of a response is the one that was asked for")
def block_is_the_asked_one(message: Message, state: State) -> str | None:
    """Judge where the block of a response begins: sizes may differ."""
    request, answer = request_of(message, state), asked_block(message)
    if request is None or answer is None:
        return None
    asked = request.block2[0] if request.block2 is not None else 0
    return None if answer[0] == asked else f"a block from byte {answer[0]} on where the one from {asked} on was asked for"


@rule("RFC7959-2.4-size", "RFC 7959 §2.4", "error", "the block of a response is not larger than was asked for")
def block_is_not_larger(message: Message, state: State) -> str | None:
    """Judge the block size of a response."""
    request, answer = request_of(message, state), asked_block(message)
    if request is None or request.block2 is None or answer is None or answer[1] <= request.block2[1]:
        return None
    return f"a block of {answer[1]} bytes where {request.block2[1]} were asked for"


@rule("RFC7959-2.3-echo", "RFC 7959 §2.3", "error", "Block1 in a response has the number of the request's")
def block_number_is_echoed(message: Message, state: State) -> str | None:
    """Judge Block1 of a response."""
    request, number = request_of(message, state), message["block1_num"]
    if request is None or number is None or number == request.block1_num:
        return None
    return f"Block1 {number} in answer to {'none' if request.block1_num is None else request.block1_num}"


@rule("RFC7959-2.4-same", "RFC 7959 §2.4", "error", "further blocks are asked for in the size that the server sends")
def further_blocks_are_of_one_size(message: Message, state: State) -> str | None:
    """Judge a request for the block that follows the last one."""
    asked = asked_block(message) if is_request(message) and not message["is_q_block"] else None
    served = state.served.get((message["direction"], (message["uri_path"], message["uri_query"])))
    if asked is None or served is None or asked[0] != served[0] or asked[1] == served[1]:
        return None
    return f"a block of {asked[1]} bytes is asked for where the server sends {served[1]}"
