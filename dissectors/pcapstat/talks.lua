-- Places each message in its exchange, once, when its frame is first seen.

local coap_pairing = require("pcapstat.coap_pairing")
local exchanges = require("pcapstat.exchanges")
local messages = require("pcapstat.messages")
local mqtt_pairing = require("pcapstat.mqtt_pairing")

local talks = {}

local PAIRINGS = { coap = coap_pairing, mqtt = mqtt_pairing, mqttsn = mqtt_pairing }
local last_frame = 0

-- Called by each entry file while it loads.
talks.prepare = messages.prepare

-- A capture is opened, or dissected anew.
function talks.init()
    messages.init()
    exchanges.init()
    mqtt_pairing.init()
    last_frame = 0
end

local function place(message)
    local pairing = PAIRINGS[message.protocol]
    if pairing and not message.malformed and not message.is_unidentified then
        local stream, side = message.stream, message.side
        pairing.place(message, side, side == stream.client and stream.server or stream.client)
    end
    -- the start of its payload, which only pairing asks for, may be long
    message.digest = nil
end

-- The packet of a frame as `messages.at` tells it, its messages placed. The second result tells whether the frame was seen for the first time.
function talks.at(tvb, pinfo, number)
    local packet = messages.at(tvb, pinfo, number)
    local is_new = number > last_frame
    if is_new then
        last_frame = number
        for _, message in ipairs(packet and packet.messages or {}) do
            place(message)
        end
    end
    return packet, is_new
end

return talks
