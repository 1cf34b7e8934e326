-- MQTT control packets (MQTT 5 §2 and §3; 3.1.1 likewise without properties): where their bytes go, what they say, what the standard says they weigh.

local mqtt = {}

mqtt.PORTS = { [1883] = true, [8883] = true }

local floor = math.floor

mqtt.NAMES = {
    "CONNECT", "CONNACK", "PUBLISH", "PUBACK", "PUBREC", "PUBREL", "PUBCOMP", "SUBSCRIBE", "SUBACK", "UNSUBSCRIBE", "UNSUBACK", "PINGREQ",
    "PINGRESP", "DISCONNECT", "AUTH",
}
local QOS = { [0] = "QoS 0", "QoS 1", "QoS 2" }

-- Bytes of each property behind its identifier (MQTT 5 §2.2.2.2): a number of bytes, or how it tells them.
local VARIABLE, TEXT, PAIR = "variable", "text", "pair"
local PROPERTIES = {
    [1] = 1, [2] = 4, [3] = TEXT, [8] = TEXT, [9] = TEXT, [11] = VARIABLE, [17] = 4, [18] = TEXT, [19] = 2, [21] = TEXT, [22] = TEXT,
    [23] = 1, [24] = 4, [25] = 1, [26] = TEXT, [28] = TEXT, [31] = TEXT, [33] = 2, [34] = 2, [35] = 2, [36] = 1, [37] = 1, [38] = PAIR,
    [39] = 4, [40] = 1, [41] = 1, [42] = 1,
}
local TOPIC_ALIAS = 35
local CONNECT, CONNACK, PUBLISH, PUBREL, SUBSCRIBE, UNSUBSCRIBE = 1, 2, 3, 6, 8, 10
-- Bytes at a payload's start that tell publications of one topic apart, with its length.
local DIGESTED = 4096

-- A Variable Byte Integer at `at` (MQTT 5 §1.5.5): its value, and where the next byte stands.
local function variable(bytes, at)
    local value, factor = 0, 1
    for index = at, at + 3 do
        local byte = bytes:byte(index)
        if not byte then
            return nil
        end
        value = value + (byte % 128) * factor
        if byte < 128 then
            return value, index + 1
        end
        factor = factor * 128
    end
    return nil
end

local function variable_bytes(value)
    return value < 128 and 1 or value < 16384 and 2 or value < 2097152 and 3 or 4
end

local function u16(bytes, at)
    local high, low = bytes:byte(at, at + 1)
    return low and high * 256 + low
end

-- Where a string or binary data with its length ends; none where the bytes end before.
local function behind_text(bytes, at)
    local length = u16(bytes, at)
    return length and at + 2 + length
end

local function behind_property(bytes, at, kind)
    if kind == TEXT then
        return behind_text(bytes, at)
    elseif kind == PAIR then
        local middle = behind_text(bytes, at)
        return middle and behind_text(bytes, middle)
    elseif kind == VARIABLE then
        local _, behind = variable(bytes, at)
        return behind
    end
    return kind and at + kind
end

-- Reads properties with their length. Returns where they end, and their specified size; none where they are broken.
local function properties(bytes, at, message)
    local length, first = variable(bytes, at)
    if not length then
        return nil
    end
    local behind = first + length
    local place = first
    while place < behind do
        local identifier = bytes:byte(place)
        local next_place = identifier and behind_property(bytes, place + 1, PROPERTIES[identifier])
        if not next_place or next_place > behind then
            return nil
        end
        if identifier == TOPIC_ALIAS then
            message.topic_alias = u16(bytes, place + 1)
        end
        place = next_place
    end
    message.option = message.option + behind - at
    return behind, variable_bytes(length) + length
end

-- The topic, where an alias stands for it the one that the alias was set to (MQTT 5 §3.3.2.3.4).
local function resolve(message, topic, aliases)
    local alias = message.topic_alias
    if alias and topic == "" then
        return aliases[alias]
    elseif alias then
        aliases[alias] = topic
    end
    return topic
end

-- Without CONNECT the version is what the first PUBLISH shows: 5 where properties can be read behind its topic.
local function infer(connection, bytes, at)
    if not connection.version then
        connection.version = properties(bytes, at, { option = 0 }) and 5 or 4
    end
end

-- §3.3; returns where the payload begins, and the specified size of what is before it.
local function publish(message, bytes, at, connection, run)
    local flags = bytes:byte(1) % 16
    message.qos, message.dup, message.retain = floor(flags / 2) % 4, flags >= 8, flags % 2 == 1
    message.variant = QOS[message.qos] or ""
    local behind = behind_text(bytes, at)
    if not behind or message.qos == 3 then
        return nil
    end
    local topic, specified = bytes:sub(at + 2, behind - 1), behind - at
    if message.qos > 0 then
        message.id = u16(bytes, behind)
        behind, specified = behind + 2, specified + 2
    end
    infer(connection, bytes, behind)
    if connection.version == 5 then
        local size
        behind, size = properties(bytes, behind, message)
        if not behind then
            return nil
        end
        specified = specified + size
    end
    run.aliases = run.aliases or {}
    message.topic = resolve(message, topic, run.aliases)
    return behind, specified
end

local function connect(message, bytes, at, connection)
    local behind = behind_text(bytes, at)
    local level, flags = bytes:byte(behind or at, (behind or at) + 1)
    if not flags then
        return nil
    end
    -- the topmost bit marks a bridge between brokers, a private agreement of Mosquitto's: the other broker then leaves RETAIN as it is
    message.is_retain_as_published = level >= 128
    message.is_new_session = floor(flags / 2) % 2 == 1
    connection.version = math.max(3, math.min(5, level % 128))
    behind = behind + 4
    if connection.version == 5 then
        behind = properties(bytes, behind, message)
    end
    local first = behind
    behind = behind and behind_text(bytes, behind)
    message.client_identifier = behind and bytes:sub(first + 2, behind - 1)
    if behind and floor(flags / 4) % 2 == 1 and connection.version == 5 then
        behind = properties(bytes, behind, message)
    end
    -- will topic, will payload, user name and password stand behind it: their sizes are the rest
    return behind
end

local function connack(message, bytes, at, connection)
    -- before version 5 it has two bytes
    connection.version = connection.version or variable(bytes, 2) == 2 and 4 or 5
    message.is_session_present, message.result = (bytes:byte(at) or 0) % 2 == 1, bytes:byte(at + 1)
    -- MQTT 3.1 has a reserved bit there
    message.is_new_session = not message.is_session_present and (connection.version or 4) > 3
    if connection.version ~= 5 or at + 2 > #bytes then
        return at + 2, 2
    end
    local behind, size = properties(bytes, at + 2, message)
    return behind, size and 2 + size
end

-- Reason code and properties of PUBACK and its like, DISCONNECT and AUTH (§3.4.2.1): each may be left out.
local function reason(message, bytes, at)
    local last = #bytes
    if at > last then
        return at, 0
    end
    message.result = bytes:byte(at)
    if at + 1 > last then
        return at + 1, 1
    end
    local behind, size = properties(bytes, at + 1, message)
    return behind, size and 1 + size
end

local function acknowledgement(message, bytes, at)
    message.id = u16(bytes, at)
    local behind, size = reason(message, bytes, at + 2)
    return behind, size and 2 + size
end

local function disconnect(message, bytes, at)
    return reason(message, bytes, at)
end

-- Whether one of the subscriptions from `at` on asks for RETAIN as published (MQTT 5 §3.8.3.1).
local function asks_for_retain(bytes, at)
    local behind = behind_text(bytes, at)
    local options = behind and bytes:byte(behind)
    return options ~= nil and (floor(options / 8) % 2 == 1 or asks_for_retain(bytes, behind + 1))
end

-- Whether topic filters, each with so many bytes of options, stand from `at` on up to the end.
local function are_filters(bytes, at, options)
    while at and at <= #bytes do
        at = behind_text(bytes, at)
        at = at and at + options
    end
    return at == #bytes + 1
end

-- Without CONNECT the version is 5 where what may be properties stands behind the identifier, and all else is right behind it.
local function infer_by_filters(connection, message, bytes, at)
    if connection.version then
        return
    elseif message.number == SUBSCRIBE or message.number == UNSUBSCRIBE then
        local behind = properties(bytes, at, { option = 0 })
        connection.version = behind and are_filters(bytes, behind, message.number == SUBSCRIBE and 1 or 0) and 5 or 4
    else
        connection.version = bytes:byte(at) == 0 and #bytes > at and 5 or 4
    end
end

-- SUBSCRIBE, SUBACK, UNSUBSCRIBE, UNSUBACK: identifier, properties, and filters or reason codes up to the end.
local function with_properties(message, bytes, at, connection)
    message.id = u16(bytes, at)
    infer_by_filters(connection, message, bytes, at + 2)
    local last = #bytes
    if connection.version ~= 5 or at + 2 > last then
        return last + 1, last + 1 - at
    end
    local behind, size = properties(bytes, at + 2, message)
    message.is_retain_as_published = message.number == SUBSCRIBE and behind and asks_for_retain(bytes, behind)
    return behind and last + 1, behind and 2 + size + last + 1 - behind
end

local function nothing(_, _, at)
    return at, 0
end

local READERS = {
    connect, connack, publish, acknowledgement, acknowledgement, acknowledgement, acknowledgement, with_properties, with_properties,
    with_properties, with_properties, nothing, nothing, disconnect, disconnect,
}
local MAY_LEAVE_OUT = { [4] = true, [5] = true, [6] = true, [7] = true, [14] = true, [15] = true }

-- The least that means the same: a reason code of 0 without properties is left out (MQTT 5 §3.4.2.1).
local function least(message, specified, len)
    if not MAY_LEAVE_OUT[message.number] or message.result ~= 0 or message.option > 1 then
        return specified
    end
    message.cause = message.option > 0 and "Reason Code, Property Length" or "Reason Code"
    local body = message.number <= 7 and 2 or 0
    return len and 2 + body or specified
end

-- DUP of another packet than PUBLISH, which only MQTT 3.1 has (MQTT 3.1 §2.1).
local function dup(number, flags, connection)
    local may_be = flags >= 8 and (number == PUBREL or number == SUBSCRIBE or number == UNSUBSCRIBE)
    if may_be and not connection.version then
        connection.version = 3
    end
    return may_be and connection.version == 3 or nil
end

local function weigh(message, specified, remaining, len)
    if message.number == 1 or not specified then
        return
    end
    message.observed = 1 + variable_bytes(remaining) + remaining
    message.specified = 1 + variable_bytes(specified) + specified
    message.minimal = least(message, message.specified, len)
    if message.observed ~= len then
        message.cause = "Remaining Length"
    elseif message.specified ~= message.observed then
        message.cause = "Property Length"
    end
end

local function broken(message, len)
    message.header, message.option, message.payload, message.opaque = 0, 0, 0, len
    message.malformed = "fields, MQTT 5 §3"
    return message
end

-- Bytes of a PUBLISH's header, and those of its properties with their length; none where they are not known.
local function lengths(bytes, at, connection)
    local behind = behind_text(bytes, at)
    if not behind then
        return #bytes, nil
    end
    behind = behind + (floor(bytes:byte(1) / 2) % 4 > 0 and 2 or 0)
    if connection.version ~= 5 then
        return behind - 1, connection.version and 0
    end
    local length, first = variable(bytes, behind)
    return behind - 1, length and first + length - behind
end

-- A control packet whose bytes end before its payload. Of a PUBLISH its length fields tell what the missing bytes are, as far as they are there.
local function cut(message, bytes, at, len, connection)
    local header, option = #bytes, nil
    if message.number == PUBLISH then
        header, option = lengths(bytes, at, connection)
    end
    local rest = len - header - (option or 0)
    if rest < 0 then
        return broken(message, len)
    end
    message.header, message.option, message.is_unidentified, message.client_identifier = header, option or 0, true, nil
    message.payload, message.opaque = option and rest or 0, option and 0 or rest
    return message
end

-- Length of the control packet that begins with these bytes.
function mqtt.length(bytes)
    local remaining, at = variable(bytes, 2)
    return remaining and at - 1 + remaining
end

-- Whether the first bytes of a control packet hold all before a payload: of a PUBLISH topic, identifier and properties. Others have no payload.
function mqtt.is_enough(bytes, connection)
    local _, at = variable(bytes, 2)
    local behind = at and floor(bytes:byte(1) / 16) == PUBLISH and behind_text(bytes, at)
    if not behind then
        return false
    end
    local has_id = floor(bytes:byte(1) / 2) % 4 > 0
    local length, first = variable(bytes, behind + (has_id and 2 or 0))
    return length ~= nil and ((connection.version or 5) < 5 or first + length - 1 <= #bytes)
end

-- A control packet of `len` bytes, of which `bytes` holds the start (all of it, but for a long payload). `connection` keeps
-- the version, and `run`, the bytes in order that it is of, topic aliases: a hole before them may have held others.
function mqtt.read(bytes, len, connection, run)
    local first = bytes:byte(1) or 0
    local remaining, at = variable(bytes, 2)
    local number = floor(first / 16)
    -- at most 32 fields: a table of more takes twice the room
    local message = {
        protocol = "mqtt", number = number, kind = mqtt.NAMES[number] or "Reserved", variant = "", security = 0, header = 0, option = 0, payload = 0,
        opaque = 0, link = 0, padding = 0, ip = 0, transport = 0, frame_bytes = 0, frame = 0, frame_first = 0, time_ns = 0, stream = false,
        side = false, exchange = nil, id = nil, is_data = false, observed = nil, specified = nil, minimal = nil, topic = nil, qos = nil, dup = nil,
        retain = nil, digest = nil, expects_ack = nil,
    }
    local reader = READERS[number]
    if not remaining or not reader then
        return broken(message, len)
    end
    if #bytes < len and not mqtt.is_enough(bytes, connection) then
        if number == CONNECT or number == CONNACK then
            -- the version may be there
            reader(message, bytes, at, connection)
        end
        return cut(message, bytes, at, len, connection)
    end
    message.dup = dup(number, first % 16, connection)
    local behind, specified = reader(message, bytes, at, connection, run)
    if not behind then
        return broken(message, len)
    end
    if number == PUBLISH then
        message.payload = len - (behind - 1)
        message.digest = bytes:sub(behind, behind + DIGESTED - 1) .. message.payload
        specified = specified + message.payload
    end
    message.header = len - message.option - message.payload
    weigh(message, specified, remaining, len)
    return message
end

return mqtt
