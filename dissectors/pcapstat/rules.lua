-- Rules of the standards that a single message shows to be broken, with the identifiers of `pcapstat validate`. A check returns what is wrong.

local rules = {}

-- RFC 7252 §4.8.
local ACK_TIMEOUT_S, MAX_RETRANSMIT = 2, 4
-- RFC 7252 §4.6.
local MOST_BYTES = 1152
-- Of a wait: for timers and the path.
local TOLERANCE = 0.1

local function back_off(message)
    if message.kind ~= "CON" or not message.wait_ns or message.was_acknowledged then
        return nil
    end
    local wait_s, since_s = message.wait_ns / 1e9, message.since_first_ns / 1e9
    local least_s = ACK_TIMEOUT_S * (2 ^ (message.turn - 1) - 1)
    if wait_s < ACK_TIMEOUT_S * (1 - TOLERANCE) then
        return ("sent again after %.3f s where %d s are the least"):format(wait_s, ACK_TIMEOUT_S)
    end
    local is_early = since_s < least_s * (1 - TOLERANCE)
    return is_early and ("sent again %.3f s after the first time where %.0f s are the least"):format(since_s, least_s) or nil
end

local function retransmissions_end(message)
    local count = message.kind == "CON" and message.turn and message.turn - 1 or 0
    return count > MAX_RETRANSMIT and ("sent again for the %dth time"):format(count) or nil
end

local function answered_is_not_repeated(message)
    local is_late = message.kind == "CON" and message.was_acknowledged
    return is_late and "sent again although it was answered (the answer may be lost on its way)" or nil
end

local function acknowledgement_carries_no_request(message)
    local is_broken = message.kind == "ACK" and message.code > 0 and message.code < 32 or message.kind == "RST" and message.code ~= 0
    return is_broken and message.kind .. " with code " .. message.variant or nil
end

local function non_is_not_empty(message)
    return message.kind == "NON" and message.code == 0 and "an Empty NON" or nil
end

local function message_is_small(message)
    local own = message.header + message.option + message.payload
    return own > MOST_BYTES and ("%d bytes"):format(own) or nil
end

local function notifications_are_newer(message)
    return message.is_stale and message.observe and "an old Observe value, out of order on the path, or not counted on" or nil
end

local function szx_is_not_reserved(message)
    local is_reserved = message.block1 and message.block1.szx == 7 or message.block2 and message.block2.szx == 7
    return is_reserved and not message.is_over_tcp and "SZX 7" or nil
end

local function block_is_full(message)
    local is_request = message.code and message.code > 0 and message.code < 32
    local block = is_request and message.block1 or not is_request and message.block2
    if not block or not block.more or block.szx == 7 then
        return nil
    end
    local size = 2 ^ (4 + block.szx)
    return message.payload ~= size and ("%d bytes in a block of %d"):format(message.payload, size) or nil
end

local function qos_0_has_no_dup(message)
    return message.number == 3 and message.qos == 0 and message.dup and "DUP 1 with QoS 0" or nil
end

local function topic_has_no_wildcard(message)
    return message.number == 3 and (message.topic or ""):find("[#+]") and "a topic name with a wildcard" or nil
end

local function alias_is_not_0(message)
    return message.topic_alias == 0 and "Topic Alias 0" or nil
end

-- Rules of each protocol: identifier, severity, check.
rules.OF = {
    coap = {
        { "RFC7252-4.2-timeout", "warn", back_off },
        { "RFC7252-4.2-max-retransmit", "warn", retransmissions_end },
        { "RFC7252-4.2-answered", "note", answered_is_not_repeated },
        { "RFC7252-4.2-ack-content", "error", acknowledgement_carries_no_request },
        { "RFC7252-4.3-non", "error", non_is_not_empty },
        { "RFC7252-4.6-size", "note", message_is_small },
        { "RFC7641-3.4-order", "warn", notifications_are_newer },
        { "RFC7959-2.2-szx", "error", szx_is_not_reserved },
        { "RFC7959-2.3-size", "error", block_is_full },
    },
    mqtt = {
        { "MQTT-3.3.1-2", "error", qos_0_has_no_dup },
        { "MQTT-3.3.2-2", "error", topic_has_no_wildcard },
        { "MQTT-3.3.2-8", "error", alias_is_not_0 },
    },
}

return rules
