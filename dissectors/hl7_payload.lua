-- HL7 version 2 messages (HL7 2.3 chapter 2) in CoAP content and MQTT publications: segments, fields, message type.
--   tshark -r FILE -X lua_script:hl7_payload.lua -Y 'hl7_payload.type == "ADT"'

local version = require("pcapstat.version")
if not version.is_enough("hl7_payload.lua") then
    return
end

local payloads = require("pcapstat.payloads")
local show = require("pcapstat.show")
local stage = require("pcapstat.stage")

local hl7 = Proto("hl7_payload", "HL7 version 2 message")

local function text_field(name, label, about)
    return ProtoField.string("hl7_payload." .. name, label, base.UNICODE, about)
end

local shown = {
    type = text_field("type", "Message type", "MSH-9"),
    control_id = text_field("control_id", "Message control ID", "MSH-10"),
    version = text_field("version", "Version", "MSH-12"),
    application = text_field("sending_application", "Sending application", "MSH-3"),
    segments = ProtoField.uint32("hl7_payload.segments", "Segments", base.DEC, nil, 0, "Segments, MSH among them"),
    segment = text_field("segment", "Segment", "Three letters"),
    field = text_field("field", "Field", "Segment, position and value; empty fields are left out"),
}
local all = show.list(shown)
hl7.fields = all

-- Fields of MSH that are shown by name, by their position.
local NAMED = { [3] = "application", [9] = "type", [10] = "control_id", [12] = "version" }

payloads.add_preferences(hl7.prefs)
payloads.prepare()
hl7.init = payloads.init

-- Calls `take(position, from, to)` for each field of the segment in bytes `first` to `last`; counting from 1 behind the segment's name.
local function each_field(text, first, last, separator, take)
    local position, at = 0, first
    while at <= last + 1 do
        local found = text:find(separator, at, true)
        local behind = math.min(found or last + 1, last + 1)
        take(position, at, behind - 1)
        position, at = position + 1, behind + 1
    end
end

local function add_segment(root, range, text, first, last, separator)
    local name = text:sub(first, first + 2)
    local is_head = name == "MSH"
    local branch = root:add(shown.segment, range(first - 1, last - first + 1), name)
    each_field(text, first, last, separator, function(position, from, to)
        -- in MSH the separator itself is the first field
        local number = is_head and position > 0 and position + 1 or position
        if position > 0 and to >= from then
            local place = range(from - 1, to - from + 1)
            branch:add(shown.field, place, ("%s-%d: %s"):format(name, number, text:sub(from, to)))
            if is_head and NAMED[number] then
                root:add(shown[NAMED[number]], place, text:sub(from, to))
            end
        end
    end)
end

-- Segments end with a carriage return; line feeds are seen too.
local function add_message(tree, range, text)
    local separator = text:sub(4, 4)
    local root = tree:add(hl7, range)
    local count, at = 0, 1
    while at <= #text do
        local found = text:find("[\r\n]", at)
        local last = (found or #text + 1) - 1
        if last >= at + 2 then
            add_segment(root, range, text, at, last, separator)
            count = count + 1
        end
        at = last + 2
    end
    root:add(shown.segments, count):set_generated()
end

local function dissect(tree, packet, _, look)
    payloads.each(hl7.prefs, packet, look, function(payload)
        if payload.head:find("^MSH[^%w%s]") then
            add_message(tree, payload.range, payload.range:raw())
        end
    end)
end

stage.add(all, dissect)
