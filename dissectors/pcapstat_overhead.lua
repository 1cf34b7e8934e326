-- pcapstat: where the bytes of each frame and each message go, and what the standards say that a message weighs (CoAP, MQTT, MQTT-SN; secured
-- records). The same figures as the columns of `pcapstat messages`. Usable alone with the folder pcapstat/ beside it:
--   tshark -r FILE -X lua_script:pcapstat_overhead.lua -V

local version = require("pcapstat.version")
if not version.is_enough("pcapstat_overhead.lua") then
    return
end

local layers = require("pcapstat.layers")
local stage = require("pcapstat.stage")
local talks = require("pcapstat.talks")

local overhead = Proto("pcapstat_overhead", "pcapstat: bytes by layer")

local PREFIX = "pcapstat_overhead."
local PARTS = layers.PARTS
local ABOUT = {
    link = "Share of link-layer headers",
    padding = "Share of padding and trailers behind the IP packet",
    ip = "Share of IP headers",
    transport = "Share of UDP or TCP headers",
    security = "(D)TLS record header, explicit nonce, tag, padding and content type byte; OSCORE option and tag",
    header = "The protocol's own header bytes",
    option = "Option bytes (CoAP), property bytes with their length field (MQTT 5)",
    payload = "Application payload",
    opaque = "Bytes whose role cannot be told: encrypted or malformed",
}
local function bytes_field(name, label, about)
    return ProtoField.uint32(PREFIX .. name, label, base.DEC, nil, 0, about)
end

local shown = {
    message = ProtoField.string(PREFIX .. "message", "Message", base.UNICODE, "Protocol, kind and variant"),
    frame_bytes = bytes_field("frame_bytes", "Bytes on the wire", "Bytes that this message answers for: its own and its share of headers"),
    layer_bytes = bytes_field("layer_bytes", "Bytes at the chosen layer", "Bytes from the layer of the preferences on"),
    ratio = ProtoField.double(PREFIX .. "overhead_ratio", "Overhead ratio", "1 - payload / bytes at the chosen layer, to four places"),
    frame_first = ProtoField.framenum(PREFIX .. "frame_first", "First frame", base.NONE, 0, 0, "First frame that carries bytes of it"),
    observed = bytes_field("observed_bytes", "Observed size", "The message without what carries it"),
    specified = bytes_field("specified_bytes", "Specified size", "What the standard says a message with these fields occupies"),
    minimal = bytes_field("minimal_bytes", "Minimal size", "The smallest message that could have carried the same meaning"),
    difference = ProtoField.int32(PREFIX .. "difference_bytes", "More than minimal", base.DEC, nil, 0, "Observed less minimal size"),
    cause = ProtoField.string(PREFIX .. "difference_cause", "Because of", base.UNICODE, "The field that makes the difference"),
    malformed = ProtoField.string(PREFIX .. "malformed", "Malformed", base.UNICODE, "What breaks the format"),
}
local frame_shown = {
    link = bytes_field("frame.link_bytes", "Link layer", ABOUT.link),
    padding = bytes_field("frame.padding_bytes", "Padding", ABOUT.padding),
    ip = bytes_field("frame.ip_bytes", "IP", ABOUT.ip),
    transport = bytes_field("frame.transport_bytes", "Transport", ABOUT.transport),
    payload = bytes_field("frame.transport_payload_bytes", "Transport payload", "Bytes behind the UDP or TCP header"),
}
for _, part in ipairs(PARTS) do
    shown[part] = bytes_field(part .. "_bytes", part:sub(1, 1):upper() .. part:sub(2), ABOUT[part])
end

local all = {}
for _, list in ipairs({ shown, frame_shown }) do
    for _, field in pairs(list) do
        all[#all + 1] = field
    end
end
overhead.fields = all

overhead.prefs.layer = Pref.enum("Count bytes at", 1, "Layer at which the overhead ratio counts bytes (pcapstat --layer)", layers.CHOICES, false)

talks.prepare()
overhead.init = talks.init

-- To four places, which a column has room for.
local function rounded(ratio)
    return math.floor(ratio * 1e4 + 0.5) / 1e4
end

local function add_theory(branch, message)
    if not message.specified then
        return
    end
    branch:add(shown.observed, message.observed)
    branch:add(shown.specified, message.specified)
    branch:add(shown.minimal, message.minimal)
    branch:add(shown.difference, message.observed - message.minimal)
    if message.observed ~= message.minimal and message.cause then
        branch:add(shown.cause, message.cause)
    end
end

local function title(message)
    local variant = message.variant ~= "" and " " .. message.variant or ""
    return message.protocol .. " " .. message.kind .. variant
end

local function add_message(root, message, layer)
    local branch = root:add(shown.message, title(message))
    branch:set_generated()
    branch:add(shown.frame_bytes, message.frame_bytes)
    for _, part in ipairs(PARTS) do
        branch:add(shown[part], message[part])
    end
    if message.frame_first ~= message.frame then
        branch:add(shown.frame_first, message.frame_first)
    end
    local bytes = layers.bytes(message, layer)
    branch:add(shown.layer_bytes, bytes)
    if bytes > 0 then
        branch:add(shown.ratio, rounded(1 - message.payload / bytes))
    end
    if message.malformed then
        branch:add(shown.malformed, message.malformed)
    end
    add_theory(branch, message)
end

local function add_frame(root, packet)
    local headers = packet.headers
    for at, part in ipairs({ "link", "padding", "ip", "transport" }) do
        root:add(frame_shown[part], headers[at])
    end
    root:add(frame_shown.payload, math.max(0, packet.payload))
end

local function dissect(tree, packet)
    local root = tree:add(overhead)
    root:set_generated()
    add_frame(root, packet)
    for _, message in ipairs(packet.messages) do
        add_message(root, message, overhead.prefs.layer)
    end
end

stage.add(all, dissect)
