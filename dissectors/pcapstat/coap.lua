-- CoAP messages (RFC 7252 §3; over TCP RFC 8323 §3.2, over WebSockets §4): where their bytes go, what they say, and what the standard says they weigh.

local coap = {}

coap.PORTS = { [5683] = true, [5684] = true }

local TYPES = { [0] = "CON", "NON", "ACK", "RST" }
local METHODS = { "GET", "POST", "PUT", "DELETE", "FETCH", "PATCH", "iPATCH" }
local SIGNALS = { [225] = "CSM", [226] = "Ping", [227] = "Pong", [228] = "Release", [229] = "Abort" }
local MARKER, CSM, SUCCESS = 0xff, 225, 2
local OBSERVE, OSCORE, CONTENT_FORMAT, URI_PATH, URI_QUERY, BLOCK2, BLOCK1 = 6, 9, 12, 11, 15, 23, 27
local Q_BLOCK1, Q_BLOCK2, NO_RESPONSE = 19, 31, 258
-- Options that name a resource besides path and query: Uri-Host, Uri-Port, Proxy-Uri, Proxy-Scheme (RFC 7252 §5.10.1, §5.10.2).
local PLACE = { [3] = true, [7] = true, [35] = true, [39] = true }

-- Options whose value is a number without leading zeros (RFC 7252 §3.2): name, most bytes.
local NUMBERS = {
    [6] = { "Observe", 3 }, [7] = { "Uri-Port", 2 }, [12] = { "Content-Format", 2 }, [14] = { "Max-Age", 4 }, [16] = { "Hop-Limit", 1 },
    [17] = { "Accept", 2 }, [19] = { "Q-Block1", 3 }, [23] = { "Block2", 3 }, [27] = { "Block1", 3 }, [28] = { "Size2", 4 },
    [31] = { "Q-Block2", 3 }, [60] = { "Size1", 4 }, [258] = { "No-Response", 1 },
}

-- Extended bytes of an option's delta or length (RFC 7252 §3.1), of a message's length over TCP one more step.
local function extended_bytes(number)
    return number < 13 and 0 or number < 269 and 1 or 2
end

local function uint_bytes(value)
    return value == 0 and 0 or value < 256 and 1 or value < 65536 and 2 or value < 16777216 and 3 or 4
end

local function uint(bytes, at, length)
    local value = 0
    for index = at, at + length - 1 do
        value = value * 256 + bytes:byte(index)
    end
    return value
end

-- A nibble and what extends it: the number and where the next byte stands. None where the bytes end or the nibble is reserved.
local function extended(bytes, nibble, at)
    if nibble < 13 then
        return nibble, at
    elseif nibble == 13 then
        local more = bytes:byte(at)
        return more and more + 13, at + 1
    elseif nibble == 14 then
        local high, low = bytes:byte(at, at + 1)
        return low and high * 256 + low + 269, at + 2
    end
    return nil, at
end

function coap.is_request(code)
    return code > 0 and code < 32
end

-- The code that the application means: the inner message's, where OSCORE's was opened.
function coap.code_of(message)
    return message.inner_code or message.code
end

function coap.class_of(message)
    return math.floor((coap.code_of(message) or 0) / 32)
end

-- Whether a response tells of success (RFC 7252 §5.9.1).
function coap.is_success(message)
    return coap.class_of(message) == SUCCESS
end

-- What a request is about.
function coap.subject_of(message)
    return (message.resource or "") .. "\0" .. (message.place or "")
end

-- Whether No-Response suppresses responses of some class: its bits for 2, 4 and 5 (RFC 7967 §2.1).
local function is_suppressing(value)
    return math.floor(value / 2) % 2 + math.floor(value / 8) % 4 > 0
end

-- The code in words: a request's method, a response's class and detail.
function coap.variant(code)
    if code == 0 then
        return ""
    end
    return METHODS[code] or SIGNALS[code] or ("%d.%02d"):format(math.floor(code / 32), code % 32)
end

local function keep_block(message, value, is_block1)
    local block = { number = math.floor(value / 16), more = math.floor(value / 8) % 2 == 1, szx = value % 8 }
    message[is_block1 and "block1" or "block2"] = block
end

-- Length of the message over TCP that begins with these bytes (RFC 8323 §3.2).
function coap.length_over_tcp(bytes)
    local first, a, b, c, d = bytes:byte(1, 5)
    local nibble = math.floor(first / 16)
    local fixed = 2 + first % 16
    if nibble < 13 then
        return fixed + nibble
    elseif nibble == 13 then
        return fixed + 1 + a + 13
    elseif nibble == 14 then
        return fixed + 2 + a * 256 + b + 269
    end
    return fixed + 4 + ((a * 256 + b) * 256 + c) * 256 + d + 65805
end

-- What an option tells besides its bytes.
local function keep(message, number, bytes, at, length)
    if number == OBSERVE and length <= 3 then
        message.observe = uint(bytes, at, length)
    elseif number == OSCORE then
        message.is_oscore = true
        message.oscore_bytes = 1 + (length > 12 and 1 or 0) + length
    elseif number == CONTENT_FORMAT and length <= 2 then
        message.content_format = uint(bytes, at, length)
    elseif number == URI_PATH or number == URI_QUERY then
        local joint = number == URI_PATH and "/" or (message.resource or ""):find("?", 1, true) and "&" or "?"
        local text = bytes:sub(at, at + length - 1)
        message.resource = (message.resource and message.resource .. joint or number == URI_QUERY and "?" or "") .. text
    elseif (number == BLOCK1 or number == Q_BLOCK1) and length <= 3 then
        keep_block(message, uint(bytes, at, length), true)
    elseif (number == BLOCK2 or number == Q_BLOCK2) and length <= 3 then
        keep_block(message, uint(bytes, at, length), false)
    elseif PLACE[number] then
        message.place = (message.place or "") .. number .. " " .. bytes:sub(at, at + length - 1)
    elseif number == NO_RESPONSE and length <= 1 then
        message.is_suppressing = is_suppressing(uint(bytes, at, length))
    elseif number == 4 or number == 292 then
        message.body_tag = (message.body_tag or "") .. bytes:sub(at, at + length - 1)
    end
end

-- Bytes that an option's value takes where it is written as the standard asks; the option's name where it is written longer.
local function specified_length(number, bytes, at, length)
    local row = NUMBERS[number]
    if not row or length > row[2] then
        return length
    end
    local least = uint_bytes(uint(bytes, at, length))
    return least, least < length and row[1] or nil
end

-- Reads options from `at` on up to the payload marker or the end. Returns where the payload begins, whether the marker was there, and the
-- options' specified size. None where they break the format, or the bytes end within one: then the fourth tells up to where they are options.
local function read_options(bytes, at, message)
    local number, specified = 0, 0
    local last = #bytes
    while at <= last do
        local first = bytes:byte(at)
        at = at + 1
        if first == MARKER then
            return at, true, specified
        end
        local delta, length
        local is_broken = first >= 0xf0 or first % 16 == 15
        delta, at = extended(bytes, math.floor(first / 16), at)
        length, at = extended(bytes, first % 16, at)
        if is_broken or not delta or not length then
            return nil, false, 0, not is_broken and last or nil
        elseif at + length - 1 > last then
            return nil, false, 0, at + length - 1
        end
        number = number + delta
        keep(message, number, bytes, at, length)
        local least, cause = specified_length(number, bytes, at, length)
        message.cause = message.cause or cause and cause .. " with leading zero bytes"
        specified = specified + 1 + extended_bytes(delta) + extended_bytes(least) + least
        at = at + length
    end
    return at, false, specified
end

-- Counts what stands behind the token: options, marker, payload (or ciphertext of OSCORE).
local function divide(message, options_at, payload_at, has_marker, len)
    local marker = has_marker and 1 or 0
    local rest = len - (payload_at - 1)
    message.header = message.header + marker
    message.security = message.is_oscore and message.oscore_bytes or 0
    message.option = payload_at - options_at - marker - message.security
    if message.is_oscore then
        message.opaque, message.payload = rest, 0
    else
        message.payload, message.opaque = rest, 0
    end
end

local function broken(message, len, why)
    message.header, message.option, message.payload, message.security, message.opaque = 0, 0, 0, 0, len
    message.malformed = why
    return message
end

-- A message whose bytes end before its payload, and of which those up to `known` are known: header and token, and options.
local function cut(message, known, len)
    message.security = message.is_oscore and message.oscore_bytes or 0
    message.option = known - message.header - message.security
    message.payload, message.opaque = 0, len - known
    message.is_cut = true
    return message
end

-- Specified size with the token that is there, minimal size with the empty one; not judged where OSCORE protects the content.
local function weigh(message, fixed, token, options, len)
    if message.is_oscore then
        return
    end
    local content = message.payload > 0 and 1 + message.payload or 0
    message.observed = len
    message.specified = fixed(options + content) + token + options + content
    message.minimal = fixed(options + content) + options + content
    if not message.cause and token > 0 then
        message.cause = "Token"
    end
end

local function udp_header()
    return 4
end

-- Len and TKL, the extended length, code (RFC 8323 §3.2).
local function tcp_header(length)
    return 2 + (length < 13 and 0 or length < 269 and 1 or length < 65805 and 2 or 4)
end

local function websocket_header()
    return 2
end

local function read_body(message, bytes, token_at, token_bytes, len, fixed)
    message.token = bytes:sub(token_at, token_at + token_bytes - 1)
    message.header = token_at - 1 + token_bytes
    local options_at = token_at + token_bytes
    if #bytes < options_at - 1 then
        message.is_unidentified = true
        return options_at - 1 <= len and cut(message, options_at - 1, len) or broken(message, len, "token, RFC 7252 §3")
    end
    local payload_at, has_marker, specified, known = read_options(bytes, options_at, message)
    known = known or payload_at and payload_at - 1
    if #bytes < len and not has_marker and known and known <= len then
        return cut(message, known, len)
    elseif not payload_at or (has_marker and payload_at > len) then
        return broken(message, len, "options or payload marker, RFC 7252 §3.1")
    end
    divide(message, options_at, payload_at, has_marker, len)
    weigh(message, fixed, token_bytes, specified, len)
    return message
end

-- A message without its fields; what every one has gets its place at once, since tables that grow cost time.
local function new_message(is_over_tcp)
    return {
        protocol = "coap", kind = "", variant = "", code = 0, id = 0, token = "", security = 0, header = 0, option = 0, payload = 0, opaque = 0,
        link = 0, padding = 0, ip = 0, transport = 0, frame_bytes = 0, frame = 0, frame_first = 0, time_ns = 0, stream = false, side = false,
        exchange = nil, observed = nil, specified = nil, minimal = nil, cause = nil, is_over_tcp = is_over_tcp, is_data = false,
    }
end

-- A message of `len` bytes in a datagram, of which `bytes` were captured; `is_cut` where they end before the payload.
function coap.read(bytes, len)
    local first, code, high, low = bytes:byte(1, 4)
    local message = new_message(false)
    if not low or math.floor(first / 64) ~= 1 or first % 16 > 8 then
        return broken(message, len, "header, RFC 7252 §3")
    end
    message.kind, message.code, message.id = TYPES[math.floor(first / 16) % 4], code, high * 256 + low
    message.variant = coap.variant(code)
    if code == 0 then
        if len > 4 then
            return broken(message, len, "bytes behind an Empty message, RFC 7252 §4.1")
        end
        message.header, message.observed, message.specified, message.minimal, message.token = 4, 4, 4, 4, ""
        return message
    end
    return read_body(message, bytes, 5, first % 16, len, udp_header)
end

-- A message over TCP, or in a WebSocket's frame, which tells the length instead.
function coap.read_over_tcp(bytes, len, is_framed)
    local first = bytes:byte(1) or 0
    local length_bytes = ({ [13] = 1, [14] = 2, [15] = 4 })[math.floor(first / 16)] or 0
    local code = bytes:byte(2 + length_bytes)
    local message = new_message(true)
    if not code or first % 16 > 8 then
        return broken(message, len, "header, RFC 8323 §3.2")
    end
    message.code, message.variant = code, coap.variant(code)
    message.kind = SIGNALS[code] or coap.is_request(code) and "Request" or code == 0 and "Empty" or "Response"
    if code >= CSM then
        message.token = bytes:sub(3 + length_bytes, 2 + length_bytes + first % 16)
        message.header = 2 + length_bytes + first % 16
        message.option = len - message.header
        return message
    end
    return read_body(message, bytes, 3 + length_bytes, first % 16, len, is_framed and websocket_header or tcp_header)
end

-- Puts what OSCORE protected in the place of the outer message (RFC 8613 §5.3: code, options, marker, payload); the tag is security.
function coap.show_inner(message, plaintext)
    local code = plaintext:byte(1)
    local tag = message.opaque - #plaintext
    if not code or tag < 0 then
        return
    end
    local observe = message.observe
    local payload_at, has_marker = read_options(plaintext, 2, message)
    if not payload_at then
        return
    end
    message.observe = observe or message.observe
    local header = has_marker and 2 or 1
    local payload = #plaintext - (payload_at - 1)
    message.inner_code, message.variant = code, coap.variant(code)
    message.security, message.header = message.security + tag, message.header + header
    message.option = message.option + #plaintext - payload - header
    message.payload, message.opaque = payload, 0
    message.inner_payload = plaintext:sub(payload_at)
end

return coap
