-- pcapstat: which messages belong together, as in the columns of `pcapstat exchanges`: requests with responses and their times, retransmissions,
-- separate responses, notifications, blocks, QoS flows, publications with their deliveries. What comes later is linked in Wireshark and in
-- tshark's second pass, where a filter makes the first one look at fields:
--   tshark -2 -Y "coap or mqtt" -r FILE -X lua_script:pcapstat_exchange.lua -V

local version = require("pcapstat.version")
if not version.is_enough("pcapstat_exchange.lua") then
    return
end

local exchanges = require("pcapstat.exchanges")
local mqtt_pairing = require("pcapstat.mqtt_pairing")
local rules = require("pcapstat.rules")
local show = require("pcapstat.show")
local stage = require("pcapstat.stage")
local talks = require("pcapstat.talks")

local exchange_proto = Proto("pcapstat_exchange", "pcapstat: exchanges")

local PREFIX = "pcapstat_exchange."

local function number_field(name, label, about)
    return ProtoField.uint32(PREFIX .. name, label, base.DEC, nil, 0, about)
end

local function text_field(name, label, about)
    return ProtoField.string(PREFIX .. name, label, base.UNICODE, about)
end

local function time_field(name, label, about)
    return ProtoField.relative_time(PREFIX .. name, label, about)
end

local function flag_field(name, label, about)
    return ProtoField.bool(PREFIX .. name, label, base.NONE, nil, 0, about)
end

local function frame_field(name, label, kind, about)
    return ProtoField.framenum(PREFIX .. name, label, base.NONE, kind, 0, about)
end

local shown = {
    exchange = number_field("exchange", "Exchange", "Number of the exchange in the capture"),
    kind = text_field("kind", "Kind", "What kind of exchange"),
    direction = text_field("direction", "Direction", "Direction of the message that began it"),
    outcome = text_field("outcome", "Outcome", "How it ended; in the first pass only where it is known already"),
    frame_first = frame_field("frame_first", "Begun in", frametype.REQUEST, "Frame of the message that began it"),
    frame_last = frame_field("frame_last", "Last message in", frametype.NONE, "Frame of the last message that belongs to it"),
    frame_ack = frame_field("frame_ack", "Acknowledged in", frametype.ACK, "Frame of the acknowledgement"),
    frame_response = frame_field("frame_response", "Answered in", frametype.RESPONSE, "Frame of the response"),
    ack_rtt = time_field("ack_rtt", "Time to acknowledgement", "From the first transmission to the acknowledgement"),
    rtt = time_field("rtt", "Time to response", "From the first transmission to the response; to PUBCOMP for QoS 2"),
    delay = time_field("delay", "Delay", "From the publisher's PUBLISH to this delivery of it to a subscriber"),
    interval = time_field("interval", "Interval", "Since the notification before, or the request before for the same resource"),
    publication = frame_field("publication", "Published in", frametype.REQUEST, "The publisher's PUBLISH that this delivery carries on"),
    delivery = frame_field("delivery", "Delivered in", frametype.RESPONSE, "A delivery of this PUBLISH to a subscriber"),
    registration = frame_field("registration", "Registered in", frametype.REQUEST, "The registration of this notification"),
    messages = number_field("messages", "Messages", "Messages, retransmissions and duplicates among them"),
    retransmissions = number_field("retransmissions", "Retransmissions", "Times that a message of it was sent again"),
    retransmission = flag_field("retransmission", "Sent again", "Whether its sender sent this message before"),
    wait = time_field("wait", "Sent again after", "Since the transmission before"),
    separate = flag_field("separate", "Separate response", "Whether the response came behind its acknowledgement (RFC 7252 §5.2.2)"),
    observe = number_field("observe", "Observe", "Observe value (RFC 7641 §2)"),
    observe_gap = number_field("observe_gap", "Observe values left out", "Values between this notification's and the one's before"),
    block_number = number_field("block.number", "Block", "Block number (RFC 7959 §2.2)"),
    block_more = flag_field("block.more", "More blocks", "More flag"),
    block_bytes = number_field("block.size_bytes", "Block size", "Size of a block"),
    transferred = number_field("block.transferred_bytes", "Transferred so far", "Data bytes of the transfer up to this block, each once"),
    parts = number_field("parts", "Blocks", "Blocks transferred"),
    payload = ProtoField.uint64(PREFIX .. "payload_bytes", "Data", base.DEC, nil, 0, "Data bytes, each once"),
    rule = text_field("rule", "Broken rule", "Identifier of a rule that this message breaks, as in pcapstat validate"),
    flow = text_field("flow", "QoS flow", "State of the QoS flow behind this message (MQTT 5 §4.3)"),
    flow_time = time_field("flow_time", "Time in the flow", "Since the PUBLISH that began the flow"),
}

local all = show.list(shown)
exchange_proto.fields = all

local SEVERITIES = { error = expert.severity.ERROR, warn = expert.severity.WARN, note = expert.severity.NOTE }
local no_answer = ProtoExpert.new(PREFIX .. "no_answer", "No answer in the capture", expert.group.SEQUENCE, SEVERITIES.warn)
local duplicate = ProtoExpert.new(PREFIX .. "duplicate", "Sent again", expert.group.SEQUENCE, SEVERITIES.note)
local broken, experts = {}, { no_answer, duplicate }
for _, list in pairs(rules.OF) do
    for _, rule in ipairs(list) do
        local name = rule[1]:lower():gsub("[^%w]+", "_")
        broken[rule[1]] = ProtoExpert.new(PREFIX .. "rule." .. name, rule[1], expert.group.PROTOCOL, SEVERITIES[rule[2]])
        experts[#experts + 1] = broken[rule[1]]
    end
end
exchange_proto.experts = experts

exchange_proto.prefs.linked = Pref.bool("Show what comes later", true, "Link requests with answers of later frames (in Wireshark, and with tshark -2)")

talks.prepare()
exchange_proto.init = talks.init

local add, add_time = show.add, show.add_time

-- A link to another frame, where that is known to this pass.
local function add_frame(branch, field, frame, now)
    if frame and (frame <= now or exchange_proto.prefs.linked) then
        branch:add(field, frame)
    end
end

local function add_blocks(branch, message)
    local block = message.block1 or message.block2
    if block then
        add(branch, shown.block_number, block.number)
        add(branch, shown.block_more, block.more)
        add(branch, shown.block_bytes, 2 ^ (4 + math.min(block.szx, 6)))
        add(branch, shown.transferred, message.transferred)
    end
end

local function add_links(branch, message, exchange)
    local now = message.frame
    add_frame(branch, shown.frame_first, exchange.frame_first, now)
    add_frame(branch, shown.frame_ack, exchange.frame_ack, now)
    add_frame(branch, shown.frame_response, exchange.frame_response, now)
    add_frame(branch, shown.frame_last, exchange.frame_last, now)
    if exchange.parent then
        add_frame(branch, exchange.delay_ns and shown.publication or shown.registration, exchange.parent.frame_first, now)
    end
    for _, frame in ipairs(message.frame == exchange.frame_first and exchange.deliveries or {}) do
        add_frame(branch, shown.delivery, frame, now)
    end
end

local function add_times(branch, exchange)
    add_time(branch, shown.ack_rtt, exchange.ack_rtt_ns)
    add_time(branch, shown.rtt, exchange.rtt_ns)
    add_time(branch, shown.delay, exchange.delay_ns)
    add_time(branch, shown.interval, exchange.interval_ns)
end

local function add_own(branch, message, exchange)
    if message.is_retransmission then
        add(branch, shown.retransmission, true)
        add_time(branch, shown.wait, message.wait_ns)
    end
    if message.is_separate then
        add(branch, shown.separate, true)
    end
    add(branch, shown.observe, message.observe)
    add(branch, shown.observe_gap, message.observe_gap)
    add_blocks(branch, message)
    if exchange.kind:sub(1, 7) == "PUBLISH" then
        add(branch, shown.flow, mqtt_pairing.state(message))
        add_time(branch, shown.flow_time, message.time_ns - exchange.time_ns)
    end
end

local function add_experts(branch, message, outcome)
    if outcome == "unanswered" and message.exchange.frame_first == message.frame and not message.is_retransmission then
        branch:add_proto_expert_info(no_answer)
    end
    if message.is_retransmission then
        branch:add_proto_expert_info(duplicate)
    end
    for _, rule in ipairs(rules.OF[message.protocol] or {}) do
        local fault = rule[3](message)
        if fault then
            add(branch, shown.rule, rule[1])
            branch:add_proto_expert_info(broken[rule[1]], rule[1] .. ": " .. fault)
        end
    end
end

local function add_message(root, message, is_capture_over)
    local exchange = message.exchange
    if not exchange then
        add_experts(root, message, nil)
        return
    end
    local outcome = exchanges.outcome(exchange, is_capture_over)
    local branch = root:add(shown.exchange, exchange.number)
    branch:set_generated()
    branch:append_text(": " .. exchange.kind .. (outcome and ", " .. outcome or ""))
    add(branch, shown.kind, exchange.kind)
    add(branch, shown.direction, exchange.direction)
    add(branch, shown.outcome, outcome)
    add_links(branch, message, exchange)
    add_times(branch, exchange)
    add(branch, shown.messages, exchange.messages)
    add(branch, shown.retransmissions, exchange.retransmissions or 0)
    add(branch, shown.parts, exchange.parts)
    add(branch, shown.payload, exchange.payload > 0 and UInt64(exchange.payload) or nil)
    add_own(branch, message, exchange)
    add_experts(branch, message, outcome)
end

local function dissect(tree, packet, is_new)
    if #packet.messages == 0 then
        return
    end
    local root = tree:add(exchange_proto)
    root:set_generated()
    for _, message in ipairs(packet.messages) do
        add_message(root, message, not is_new)
    end
end

stage.add(all, dissect)
