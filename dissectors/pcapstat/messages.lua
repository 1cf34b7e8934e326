-- The messages of a frame, each with the bytes that it answers for: link, padding, ip, transport, security, header, option, payload, opaque, as in the
-- CLI's table messages. Wireshark says where messages begin and what they hold once it has decrypted and reassembled; the parts are told
-- by their lengths. A frame is read once, in its order; what is shown later comes from what was found then, and is kept where there is a later look.

local coap = require("pcapstat.coap")
local contents = require("pcapstat.contents")
local envelope = require("pcapstat.envelope")
local extractors = require("pcapstat.fields")
local mqtt = require("pcapstat.mqtt")
local mqttsn = require("pcapstat.mqttsn")
local pieces = require("pcapstat.pieces")
local records = require("pcapstat.records")
local streams = require("pcapstat.streams")

local messages = {}

-- Bytes read of a message: nearly always enough for all before a payload, and for telling payloads apart; else all are read.
local MOST, ALL = 8192, math.huge
-- Packets with payload that are looked at for a protocol before their stream is left alone.
local TRIES = 32

local fields
local frames, last_frame, is_kept = {}, 0, true

-- Wireshark 4.0 knows WebSocket's subprotocol "coap" and not "mqtt" (MQTT 5 §6).
local function open_mqtt_in_websockets()
    local subprotocols, dissector = DissectorTable.get("ws.protocol"), Dissector.get("mqtt")
    if subprotocols and dissector and not subprotocols:get_dissector("mqtt") then
        subprotocols:add("mqtt", dissector)
    end
end

-- Called by each entry file while it loads.
function messages.prepare()
    if not fields then
        fields = extractors.prepare()
        pcall(open_mqtt_in_websockets)
    end
end

-- A capture is opened, or dissected anew.
function messages.init()
    frames, last_frame = {}, 0
    envelope.init()
    streams.init()
end

-- The bytes of a field, `most` of them at most. In the frame itself they are quicker to get.
local function raw(info, packet, most)
    local count = math.min(most or MOST, info.len)
    if packet and packet.is_in_frame then
        return packet.tvb:raw(info.offset, count)
    end
    return info.source:raw(info.offset, count)
end

-- Puts a message's share of headers to its own bytes, and the message into the frame's list.
local function finish(found, message, sum, frame_first, packet, stream, side)
    message.link, message.padding, message.ip, message.transport = sum[1], sum[2], sum[3], sum[4]
    message.security, message.header = message.security + sum[5], message.header + sum[6]
    message.frame_bytes = sum[1] + sum[2] + sum[3] + sum[4] + message.security + message.header + message.option + message.payload
        + message.opaque
    message.frame, message.frame_first = packet.number, frame_first or packet.number
    message.time_ns, message.stream, message.side = packet.time_ns, stream, side
    found[#found + 1] = message
    return message
end

-- Length of the message that a datagram is: Wireshark's field ends where a snap length cut the frame.
local function datagram_bytes(info, packet)
    return packet.is_in_frame and packet.payload or info.len
end

local function read_coap_by(bytes, info, packet, is_framed)
    if packet.is_tcp then
        local len = is_framed and info.len or coap.length_over_tcp(bytes) or info.len
        return coap.read_over_tcp(bytes, len, is_framed), len
    end
    local len = datagram_bytes(info, packet)
    return coap.read(bytes, len), len
end

local function read_coap(info, _, _, packet, is_framed)
    local message, len = read_coap_by(raw(info, packet), info, packet, is_framed)
    if message.is_cut and info.len > MOST then
        return read_coap_by(raw(info, packet, ALL), info, packet, is_framed)
    end
    return message, len
end

local function read_mqtt(info, stream, _, packet)
    local bytes = raw(info, packet)
    if info.len > MOST and not mqtt.is_enough(bytes, stream) then
        bytes = raw(info, packet, ALL)
    end
    local len = mqtt.length(bytes) or info.len
    return mqtt.read(bytes, len, stream, packet.queue), len
end

local function read_mqttsn(info, stream, side, packet)
    local len = datagram_bytes(info, packet)
    return mqttsn.read(raw(info, packet), len, stream, side), len
end

-- Protocols whose messages Wireshark delimits: its field, how a message is read, ports that tell the server.
local APPLICATIONS = {
    { field = "mqtt", read = read_mqtt, ports = mqtt.PORTS, is_tcp = true },
    { field = "coap", read = read_coap, ports = coap.PORTS, is_tcp = true, is_udp = true },
    { field = "mqttsn", read = read_mqttsn, ports = mqttsn.PORTS, is_udp = true },
}

-- Puts what OSCORE protects into the messages of this frame, as far as Wireshark opened it.
local function open_oscore(found, first)
    local infos
    for at = first, #found do
        local message = found[at]
        if message.is_oscore then
            infos = infos or { fields["oscore.code"]() }
            local info = table.remove(infos, 1)
            if info then
                coap.show_inner(message, info.source:raw(0))
            end
        end
    end
end

-- Whether a field stands in the frame itself: Wireshark's field of the IP header does.
local function is_in_frame(info, packet)
    return contents.is_same_source(info, packet.item)
end

-- Leaves out the bytes of the stream that stand before a message of this very frame and belong to none.
local function skip_to(queue, info, packet)
    local wanted = packet.payload - (info.offset - packet.payload_at)
    if queue.bytes > wanted and wanted > 0 and not packet.is_filling_hole then
        pieces.take(queue, queue.bytes - wanted)
    end
end

-- Messages of one protocol, made of the bytes in `queue`.
local function read_all(found, application, infos, queue, packet, stream, side, carried_by)
    local first = #found + 1
    for _, info in ipairs(infos) do
        packet.is_in_frame = not carried_by and is_in_frame(info, packet)
        local message, len = application.read(info, stream, side, packet, carried_by == "websocket")
        if packet.is_in_frame and packet.is_tcp then
            skip_to(queue, info, packet)
        end
        local sum, frame_first = pieces.take(queue, len)
        message.carried_by = carried_by
        finish(found, message, sum, frame_first, packet, stream, side)
    end
    open_oscore(found, first)
end

-- The protocol that this frame's stream speaks, and where its messages stand in the frame.
local function applications(packet, stream)
    if stream.application then
        return stream.application, { fields[stream.application.field]() }
    end
    for _, application in ipairs(APPLICATIONS) do
        if packet.is_tcp and application.is_tcp or not packet.is_tcp and application.is_udp then
            local infos = { fields[application.field]() }
            if #infos > 0 then
                stream.application = application
                if not stream.security then
                    streams.decide_sides(stream, application.ports)
                end
                return application, infos
            end
        end
    end
    return nil
end

-- What a record or a WebSocket's frame adds to its content is the content's, as headers are: the content goes into the queue of the protocol inside.
local function push_content(side, sum, own, content, at, packet)
    local headers = { sum[1], sum[2], sum[3], sum[4], sum[5], sum[6] }
    headers[at] = headers[at] + own - content
    if content == 0 then
        return
    end
    pieces.push(side.inner, pieces.whole(headers, content, packet.first))
end

-- Content types that Wireshark found inside records of TLS 1.3, in the order of the records; of others those on the wire.
local function shown_types(field)
    local types = {}
    for at, info in ipairs({ field() }) do
        types[at] = info.value
    end
    return types
end

local function read_record(info, stream, side, shown_type)
    if stream.is_tcp then
        return records.read_tls(raw(info), stream, side, shown_type)
    end
    return records.read_dtls(raw(info), stream, side, info.len)
end

-- Records, and the messages in those that Wireshark opened.
local function read_records(found, infos, packet, stream, side)
    local sealed, taken = {}, {}
    local types = stream.is_tcp and shown_types(fields["tls.record.content_type"]) or {}
    for at, info in ipairs(infos) do
        local message, len = read_record(info, stream, side, types[at])
        if stream.is_tcp and is_in_frame(info, packet) then
            skip_to(packet.queue, info, packet)
        end
        local sum, frame_first = pieces.take(packet.queue, len)
        taken[message] = { sum = sum, len = len }
        if message.is_encrypted then
            sealed[#sealed + 1] = message
        else
            finish(found, message, sum, frame_first, packet, stream, side)
        end
    end
    local shares = #sealed > 0 and contents.of(sealed, side)
    if not shares then
        for _, message in ipairs(sealed) do
            finish(found, message, taken[message].sum, packet.first, packet, stream, side)
        end
        return
    end
    if not stream.is_tcp then
        side.inner = pieces.queue()
    end
    for at, message in ipairs(sealed) do
        push_content(side, taken[message].sum, taken[message].len, shares[at], 5, packet)
    end
    local application, inside = applications(packet, stream)
    if application then
        read_all(found, application, inside, side.inner, packet, stream, side, "security")
    end
end

-- A WebSocket frame's header: its bytes, those of the content, and whether it is compressed (RFC 6455 §5.2, RFC 7692).
local function websocket_header(bytes)
    local first, second, a, b, c, d, e, f, g, h = bytes:byte(1, 10)
    local is_compressed = math.floor(first / 64) % 2 == 1
    local length, header = second % 128, second >= 128 and 6 or 2
    if length == 126 then
        return header + 2, a * 256 + b, is_compressed
    elseif length == 127 then
        return header + 8, ((((((a * 256 + b) * 256 + c) * 256 + d) * 256 + e) * 256 + f) * 256 + g) * 256 + h, is_compressed
    end
    return header, length, is_compressed
end

-- The frames of a WebSocket, and the messages in them. Compressed content counts as on the wire and is not opened.
local function read_websocket(found, infos, packet, stream, side)
    local is_open = false
    for _, info in ipairs(infos) do
        local header, length, is_compressed = websocket_header(raw(info, nil, 14))
        if is_in_frame(info, packet) then
            skip_to(packet.queue, info, packet)
        end
        local sum = pieces.take(packet.queue, header + length)
        if not is_compressed then
            push_content(side, sum, header + length, length, 6, packet)
            is_open = true
        end
    end
    if not is_open then
        return
    end
    local application, inside = applications(packet, stream)
    if application then
        read_all(found, application, inside, side.inner, packet, stream, side, "websocket")
    end
end

-- What carries the stream's messages: TLS, DTLS or a WebSocket; and its fields in this frame.
local function carrier(packet, stream)
    if stream.carrier then
        return { fields[stream.carrier]() }
    end
    local names = packet.is_tcp and { "tls.record", "websocket" } or { "dtls.record" }
    for _, name in ipairs(names) do
        local infos = { fields[name]() }
        if #infos > 0 then
            stream.carrier = name
            stream.security = name ~= "websocket"
            if stream.security then
                streams.decide_sides(stream, records.PORTS)
            end
            return infos
        end
    end
    return {}
end

local function read(packet, stream, side)
    local found = {}
    local infos = (stream.carrier or not stream.application) and carrier(packet, stream) or {}
    if #infos > 0 and stream.carrier == "websocket" then
        read_websocket(found, infos, packet, stream, side)
    elseif #infos > 0 then
        read_records(found, infos, packet, stream, side)
    elseif not stream.carrier then
        local application, inside = applications(packet, stream)
        if application then
            read_all(found, application, inside, packet.queue, packet, stream, side)
        end
    end
    return found
end

-- A stream of a protocol that is not ours is not looked at for ever, and its bytes are not kept.
local function is_given_up(stream, side)
    if stream.application or stream.carrier then
        return false
    end
    stream.tries = (stream.tries or 0) + 1
    if stream.tries > TRIES then
        side.queue, side.ahead = pieces.queue(), pieces.queue()
        return true
    end
    return false
end

local NONE = {}

local function compute(tvb, pinfo)
    local packet = envelope.open(tvb, pinfo)
    if not packet then
        return nil
    end
    local stream, side = streams.of(packet, pinfo)
    local had_hole = #side.held > 0
    local is_new, queue = streams.take(side, packet)
    packet.queue = queue
    packet.is_filling_hole = had_hole and queue == side.queue
    packet.messages = NONE
    stream.payload_ns = stream.payload_ns or packet.payload > 0 and packet.time_ns or nil
    if packet.payload > 0 and is_new and not is_given_up(stream, side) then
        packet.messages = read(packet, stream, side)
    end
    -- what is kept of each frame is kept small
    return {
        number = packet.number, headers = packet.headers, payload = packet.payload, stream = stream, messages = packet.messages,
        figures = false, is_counted = false,
    }
end

-- Whether frames are looked at again, so that what was found in them has to stay.
function messages.keep(is_asked)
    is_kept = is_asked
end

-- What a frame holds: its packet with headers, payload and `messages`; none where there is no UDP or TCP.
function messages.at(tvb, pinfo, frame)
    if frame > last_frame then
        if not is_kept then
            frames[last_frame] = nil
        end
        last_frame = frame
        frames[frame] = compute(tvb, pinfo)
    end
    return frames[frame]
end

-- What was found in a frame that was read before.
function messages.found(frame)
    return frames[frame]
end

return messages
