-- The numbered test payload of the studies, "Hi!0000001", in CoAP content and MQTT publications: which numbers were lost, came twice or came late at
-- the receiver's application. Messages that CoAP or MQTT sent again are counted once, as libraries do.
--   tshark -r FILE -X lua_script:hi_payload.lua -T fields -e hi_payload.number -e hi_payload.missing

local version = require("pcapstat.version")
if not version.is_enough("hi_payload.lua") then
    return
end

local payloads = require("pcapstat.payloads")
local show = require("pcapstat.show")
local stage = require("pcapstat.stage")

local hi = Proto("hi_payload", "Numbered test payload")

local function number_field(name, label, about)
    return ProtoField.uint32("hi_payload." .. name, label, base.DEC, nil, 0, about)
end

local function flag_field(name, label, about)
    return ProtoField.bool("hi_payload." .. name, label, base.NONE, nil, 0, about)
end

local shown = {
    number = number_field("number", "Number", "The number in the payload"),
    received = number_field("received", "Numbers so far", "Different numbers of this sender so far"),
    missing = number_field("missing", "Missing so far", "Numbers between the first and the largest that have not come so far"),
    lost = number_field("lost", "Left out", "Numbers left out right before this one; they may come late"),
    duplicate = flag_field("duplicate", "Duplicate", "Whether the number came before"),
    late = flag_field("late", "Late", "Whether a larger number came before"),
}
local all = show.list(shown)
hi.fields = all

local loss = ProtoExpert.new("hi_payload.loss", "Numbers are left out", expert.group.SEQUENCE, expert.severity.WARN)
local duplicate = ProtoExpert.new("hi_payload.again", "The number came before", expert.group.SEQUENCE, expert.severity.NOTE)
local late = ProtoExpert.new("hi_payload.order", "A larger number came before", expert.group.SEQUENCE, expert.severity.NOTE)
hi.experts = { loss, duplicate, late }

payloads.add_preferences(hi.prefs)
payloads.prepare()

-- Numbers that each sender has shown, by topic.
local senders = {}

function hi.init()
    payloads.init()
    senders = {}
end

local function sender_of(message)
    local topics = senders[message.side]
    if not topics then
        topics = {}
        senders[message.side] = topics
    end
    local name = message.topic or ""
    topics[name] = topics[name] or { seen = {}, count = 0 }
    return topics[name]
end

-- What a number says of those before it. Told once, in the order of frames.
local function judge(sender, number)
    local said = { number = number, is_duplicate = sender.seen[number] ~= nil }
    if not said.is_duplicate then
        sender.seen[number] = true
        sender.count = sender.count + 1
    end
    said.is_late = sender.largest ~= nil and number < sender.largest
    said.lost = sender.largest and number > sender.largest and number - sender.largest - 1 or 0
    sender.first = math.min(sender.first or number, number)
    sender.largest = math.max(sender.largest or number, number)
    said.received, said.missing = sender.count, sender.largest - sender.first + 1 - sender.count
    return said
end

local function add_payload(tree, range, said)
    local root = tree:add(hi, range)
    root:append_text(", number " .. said.number)
    root:add(shown.number, range, said.number)
    root:add(shown.received, said.received):set_generated()
    root:add(shown.missing, said.missing):set_generated()
    if said.lost > 0 then
        root:add(shown.lost, said.lost):set_generated()
        root:add_proto_expert_info(loss, ("%d numbers are left out before %d"):format(said.lost, said.number))
    end
    if said.is_duplicate then
        root:add(shown.duplicate, true):set_generated()
        root:add_proto_expert_info(duplicate)
    elseif said.is_late then
        root:add(shown.late, true):set_generated()
        root:add_proto_expert_info(late)
    end
end

local function dissect(tree, packet, _, look)
    payloads.each(hi.prefs, packet, look, function(payload)
        local message = payload.message
        local digits = payload.head:match("^Hi!(%d+)")
        if digits and not message.is_retransmission then
            message.hi = message.hi or judge(sender_of(message), tonumber(digits))
            add_payload(tree, payload.range, message.hi)
        end
    end)
end

stage.add(all, dissect)
