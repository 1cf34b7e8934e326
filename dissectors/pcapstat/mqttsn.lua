-- MQTT-SN 1.2 messages (§5): where their bytes go, what they say, what the standard says they weigh. Columns and pairing are MQTT's: `number`
-- is the control packet whose part a message plays.

local mqttsn = {}

mqttsn.PORTS = { [1883] = true, [1884] = true }

local floor = math.floor
mqttsn.REGISTER, mqttsn.REGACK = 20, 21
local NAMES = {
    [0x00] = "ADVERTISE", [0x01] = "SEARCHGW", [0x02] = "GWINFO", [0x04] = "CONNECT", [0x05] = "CONNACK", [0x06] = "WILLTOPICREQ",
    [0x07] = "WILLTOPIC", [0x08] = "WILLMSGREQ", [0x09] = "WILLMSG", [0x0a] = "REGISTER", [0x0b] = "REGACK", [0x0c] = "PUBLISH",
    [0x0d] = "PUBACK", [0x0e] = "PUBCOMP", [0x0f] = "PUBREC", [0x10] = "PUBREL", [0x12] = "SUBSCRIBE", [0x13] = "SUBACK",
    [0x14] = "UNSUBSCRIBE", [0x15] = "UNSUBACK", [0x16] = "PINGREQ", [0x17] = "PINGRESP", [0x18] = "DISCONNECT",
    [0x1a] = "WILLTOPICUPD", [0x1b] = "WILLTOPICRESP", [0x1c] = "WILLMSGUPD", [0x1d] = "WILLMSGRESP", [0xfe] = "Encapsulated",
}
local MQTT = {
    [0x04] = 1, [0x05] = 2, [0x06] = 15, [0x07] = 15, [0x08] = 15, [0x09] = 15,
    [0x0a] = 20, [0x0b] = 21, [0x0c] = 3, [0x0d] = 4, [0x0e] = 7, [0x0f] = 5, [0x10] = 6, [0x12] = 8, [0x13] = 9,
    [0x14] = 10, [0x15] = 11, [0x16] = 12, [0x17] = 13, [0x18] = 14, [0x1a] = 22, [0x1b] = 23, [0x1c] = 24, [0x1d] = 25,
}
local QOS = { [0] = "QoS 0", "QoS 1", "QoS 2", "QoS -1" }
local CONNECT, REGISTER, REGACK, PUBLISH, PUBACK, SUBSCRIBE, SUBACK, UNSUBSCRIBE = 0x04, 0x0a, 0x0b, 0x0c, 0x0d, 0x12, 0x13, 0x14
local CONNACK, PINGREQ, WILLTOPICRESP, WILLMSGRESP = 0x05, 0x16, 0x1b, 0x1d

-- Bytes of the fields of a fixed length behind the message type.
local FIXED = {
    [0x00] = 3, [0x01] = 1, [0x02] = 1, [0x04] = 4, [0x05] = 1, [0x0a] = 4, [0x0b] = 5, [0x0c] = 5, [0x0d] = 5, [0x0e] = 2, [0x0f] = 2,
    [0x10] = 2, [0x12] = 3, [0x13] = 6, [0x14] = 3, [0x15] = 2, [0x1b] = 1, [0x1d] = 1,
}

local function u16(bytes, at)
    local high, low = bytes:byte(at, at + 1)
    return low and high * 256 + low
end

-- §5.4.12. Topics are kept by ID as REGISTER and SUBSCRIBE agreed them.
local function publish(message, bytes, at, connection)
    local flags = bytes:byte(at)
    local topic = u16(bytes, at + 1)
    message.id = u16(bytes, at + 3)
    local qos = floor(flags / 32) % 4
    message.dup, message.retain, message.variant = flags >= 128, floor(flags / 16) % 2 == 1, QOS[qos]
    message.qos = qos < 3 and qos or nil
    local kind = flags % 4
    message.topic = kind == 0 and connection.topics[topic] or kind == 2 and bytes:sub(at + 1, at + 2) or "#" .. topic
    return at + 5
end

local function ask(message, connection, topic)
    connection.asked[message.number .. " " .. message.id] = topic
end

local function agree(message, connection, number, topic)
    local key = number .. " " .. message.id
    local name = connection.asked[key]
    if name then
        connection.topics[topic], connection.asked[key] = name, nil
    end
end

-- Reads what the fields tell. Returns where a payload begins; none where the bytes end before it.
local function fields(message, kind, bytes, at, connection, side)
    if #bytes < at - 1 + (FIXED[kind] or 0) then
        return nil
    elseif kind == PUBLISH then
        return publish(message, bytes, at, connection)
    elseif kind == REGISTER then
        message.id = u16(bytes, at + 2)
        if side.direction == "c2s" then
            ask(message, connection, bytes:sub(at + 4))
        else
            connection.topics[u16(bytes, at)] = bytes:sub(at + 4)
        end
        message.topic = bytes:sub(at + 4)
    elseif kind == REGACK or kind == PUBACK then
        message.id, message.result = u16(bytes, at + 2), bytes:byte(at + 4)
        if kind == REGACK and side.direction == "s2c" then
            agree(message, connection, mqttsn.REGISTER, u16(bytes, at))
        end
    elseif kind == SUBSCRIBE or kind == UNSUBSCRIBE then
        message.id, message.dup = u16(bytes, at + 1), kind == SUBSCRIBE and bytes:byte(at) >= 128
        if bytes:byte(at) % 4 == 0 then
            ask(message, connection, bytes:sub(at + 3))
        end
    elseif kind == SUBACK then
        message.id, message.result = u16(bytes, at + 3), bytes:byte(at + 5)
        agree(message, connection, 8, u16(bytes, at + 1))
    elseif kind == CONNECT then
        message.client_identifier, message.is_new_session = bytes:sub(at + 4), floor(bytes:byte(at) / 4) % 2 == 1
    elseif kind == PINGREQ and at <= #bytes then
        message.client_identifier = bytes:sub(at)
    elseif message.number and message.number >= 5 and message.number <= 7 or message.number == 11 then
        message.id = u16(bytes, at)
    elseif kind == CONNACK or kind == WILLTOPICRESP or kind == WILLMSGRESP then
        message.result = bytes:byte(at)
    end
    return #bytes + 1
end

-- A message of `len` bytes, of which `bytes` holds the start (all of it, but for a long payload); `connection` keeps topics.
function mqttsn.read(bytes, len, connection, side)
    local first = bytes:byte(1)
    local at = first == 1 and 4 or 2
    local kind = bytes:byte(at)
    local message = {
        protocol = "mqttsn", number = MQTT[kind], kind = NAMES[kind] or "Reserved", variant = "",
        security = 0, option = 0, payload = 0, opaque = 0, header = len,
    }
    connection.topics, connection.asked = connection.topics or {}, connection.asked or {}
    local behind = kind and NAMES[kind] and fields(message, kind, bytes, at + 1, connection, side)
    if not behind and #bytes < len then
        message.header, message.opaque, message.is_unidentified = #bytes, len - #bytes, true
        return message
    elseif not behind then
        message.header, message.opaque, message.malformed = 0, len, "fields, MQTT-SN 1.2 §5.4"
        return message
    end
    if kind == PUBLISH then
        message.payload = len - (behind - 1)
        message.digest = bytes:sub(behind) .. message.payload
        message.header = len - message.payload
    end
    local body = len - (at - 1)
    message.observed = len
    message.specified = body + (body + 1 < 256 and 1 or 3)
    message.minimal = message.specified
    if message.specified ~= len then
        message.cause = "Length"
    end
    return message
end

return mqttsn
