-- Payloads of this frame's CoAP messages and MQTT publications, for dissectors of what applications say: each message with the bytes that Wireshark
-- shows as its payload, and whether the user chose it.

local talks = require("pcapstat.talks")

local payloads = {}

local NAMES = { coap = "coap.payload", mqtt = "mqtt.msg", mqttsn = "mqttsn.pub.msg", oscore = "oscore.payload" }
local extractors
-- Bytes of a payload's start.
local HEAD = 32

-- The payloads of a frame, and the look at it in which they were found.
local payloads_there, last_look

-- How payloads are chosen: the preference's values.
payloads.CHOICES = {
    { 1, "all that look like it", 1 },
    { 2, "of the topics and resources below", 2 },
    { 3, "of the content formats below", 3 },
}

-- Called by each entry file while it loads.
function payloads.prepare()
    talks.prepare()
    if not extractors then
        extractors = {}
        for protocol, name in pairs(NAMES) do
            local is_known, field = pcall(Field.new, name)
            extractors[protocol] = is_known and field or function() end
        end
    end
end

payloads.init = talks.init

-- Adds the preferences that choose payloads.
function payloads.add_preferences(prefs)
    prefs.chosen = Pref.enum("Payloads", 1, "Which payloads of CoAP and MQTT are dissected", payloads.CHOICES, false)
    prefs.topics = Pref.string("Topics and resources", "", "Beginnings of MQTT topics and CoAP paths, separated by commas")
    prefs.formats = Pref.string("Content formats", "", "Numbers of CoAP Content-Formats, separated by commas")
end

local function begins_with_any(text, list)
    for beginning in list:gmatch("[^,%s]+") do
        if text and text:sub(1, #beginning) == beginning then
            return true
        end
    end
    return false
end

local function is_any(number, list)
    for listed in list:gmatch("%d+") do
        if number == tonumber(listed) then
            return true
        end
    end
    return false
end

local function is_chosen(prefs, message)
    if prefs.chosen == 2 then
        local resource = message.resource or message.exchange and message.exchange.resource
        return begins_with_any(message.topic or resource, prefs.topics)
    elseif prefs.chosen == 3 then
        return is_any(message.content_format, prefs.formats)
    end
    return true
end

-- The messages that have a payload, each with Wireshark's range of it and the start of its bytes, in their order.
local function read(packet)
    local found, infos, at = {}, {}, {}
    for _, message in ipairs(packet.messages) do
        local name = message.is_oscore and "oscore" or message.protocol
        if message.payload > 0 and extractors[name] then
            infos[name] = infos[name] or { extractors[name]() }
            at[name] = (at[name] or 0) + 1
            local info = infos[name][at[name]]
            local range = info and info.range
            if range then
                found[#found + 1] = { message = message, range = range, head = range:raw(0, math.min(range:len(), HEAD)) }
            end
        end
    end
    return found
end

-- Calls `take(payload)` for each chosen payload of a packet: its message, range, and the start of its bytes in `head`. Ranges hold for this look
-- at the frame, in which all dissectors share them.
function payloads.each(prefs, packet, look, take)
    if look ~= last_look then
        last_look, payloads_there = look, read(packet)
    end
    for _, payload in ipairs(payloads_there) do
        if is_chosen(prefs, payload.message) then
            take(payload)
        end
    end
end

return payloads
