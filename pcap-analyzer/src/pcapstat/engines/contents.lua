-- What tshark opened with the keys it was given, for pcapstat's engine "tshark": a post-dissector that adds to each frame
--   pcapstat.record   length of each (D)TLS record of application data, as Wireshark lists them; of each QUIC packet behind its connection ID
--   pcapstat.hidden   length and content type of each record that looks like application data (RFC 8446 §5.2) and is not
--   pcapstat.content  bytes of each decrypted source from the first message in it on; the whole of a reassembled message, or of a record with a part of one
--   pcapstat.inner    plaintext of each CoAP message that OSCORE protects (RFC 8613)
--   pcapstat.waiting  how many bytes at the end of that content wait for the records that complete their message
--   pcapstat.of       number of the record in the frame that has such bytes; 0 where Wireshark does not list them with their record
-- Loaded by the engine alone; the dissectors for people are in dissectors/.

local contents = Proto("pcapstat", "What pcapstat's tshark engine reads")

local shown = {
    record = ProtoField.uint32("pcapstat.record", "Length of a record of application data"),
    hidden = ProtoField.string("pcapstat.hidden", "Length and content type of a record in disguise"),
    content = ProtoField.bytes("pcapstat.content", "Content"),
    inner = ProtoField.bytes("pcapstat.inner", "Plaintext of a message"),
    waiting = ProtoField.uint32("pcapstat.waiting", "Bytes that wait for more"),
    of = ProtoField.uint32("pcapstat.of", "Number of the record"),
}
contents.fields = { shown.record, shown.hidden, shown.content, shown.inner, shown.waiting, shown.of }

-- Values that say "0-RTT" in the long header of a QUIC packet (RFC 9000 §17.2, RFC 9369 §3.2)
local EARLY = { ["quic.long.packet_type"] = 1, ["quic.long.packet_type_v2"] = 2 }
local SECURITY = { tls = true, dtls = true }
local RECORDS = { ["tls.app_data"] = true, ["dtls.app_data"] = true }
local APPLICATION_DATA = 23
local SEGMENTS = { ["tls.segment.data"] = true }

-- The decrypted source that an item stands in; none where it is the one of the item before it: further on in it, or of a protocol inside.
local function source_of(info, last)
    local bytes = info.source:bytes()
    if last and bytes == last.bytes and (info.offset > last.offset or info.name ~= last.name) then
        last.offset = math.max(last.offset, info.offset)
        return nil
    end
    return { bytes = bytes, name = info.name, first = info.offset, offset = info.offset, waiting = 0, of = 0 }
end

-- The source of a part of a message: its record's. A record may have two, the end of a message and the start of the next.
local function part_of(info, last, record)
    local bytes = info.source:bytes()
    local waiting = bytes:len() - info.offset
    if last and last.of == record then
        last.waiting, last.offset = waiting, info.offset
        return nil
    end
    return { bytes = bytes, name = info.name, first = 0, offset = info.offset, waiting = waiting, of = record }
end

-- Whether an item stands in a record with a part of a message, before that part.
local function is_listed(info, sources)
    for _, source in ipairs(sources) do
        if source.of > 0 and info.offset < source.offset and source.bytes == info.source:bytes() then
            return true
        end
    end
    return false
end

-- Whether an item stands in bytes as they came: Wireshark 4.4 shows the beginning of a record there that TCP has cut.
local function is_sealed(info, sealed)
    for _, source in ipairs(sealed) do
        if source:len() == info.source:len() and source:bytes() == info.source:bytes() then
            return true
        end
    end
    return false
end

local function is_protocol(name)
    return name ~= "" and not SECURITY[name] and not name:find(".", 1, true)
end

local TRANSPORT = { tcp = true, udp = true, ["tcp."] = true, ["udp."] = true }

-- The index behind the last field of TCP or UDP. Most fields of a frame stand before it.
local function behind_transport(infos)
    for at = #infos, 1, -1 do
        local name = infos[at].name
        if TRANSPORT[name] or TRANSPORT[name:sub(1, 4)] then
            return at + 1
        end
    end
    return 1
end

-- Records and sources of a frame, in the order of the tree.
local function gather(frame)
    local records, hidden, sources, inner, sealed = {}, {}, {}, {}, { frame }
    local last, part, disguised, number, wants_frames
    local is_quic, is_early = false, false
    local infos = { all_field_infos() }
    for at = behind_transport(infos), #infos do
        local info = infos[at]
        local name = info.name
        is_quic = is_quic or name == "quic"
        if is_quic then
            if EARLY[name] then
                is_early = info.value == EARLY[name]
            elseif name == "quic.packet_number" then
                number = info.len
            elseif number and (name == "quic.protected_payload" or (name == "quic.payload" and is_early)) then
                records[#records + 1] = number + info.len
                wants_frames = true
            elseif name == "quic.frame_type" and wants_frames then
                sources[#sources + 1] = { bytes = info.source:bytes(), first = 0, waiting = 0, of = 0 }
                wants_frames = false
            end
        elseif name == "oscore.code" then
            inner[#inner + 1] = info.source:bytes()
        elseif RECORDS[name] then
            records[#records + 1] = info.len
            sealed[#sealed + 1] = info.source
        elseif name == "tls.record.opaque_type" then
            disguised = 0
        elseif name == "tls.record.length" and disguised then
            disguised = info.value
        elseif name == "tls.record.content_type" and disguised then
            if info.value ~= APPLICATION_DATA then
                hidden[#hidden + 1] = disguised .. " " .. info.value
            end
            disguised = nil
        elseif #records > 0 and info.len > 0 and SEGMENTS[name] and not is_sealed(info, sealed) then
            local source = part_of(info, part, #records)
            sources[#sources + 1], part = source, source or part
        elseif #records > 0 and info.len > 0 and is_protocol(name) and not is_listed(info, sources) then
            local source = source_of(info, last)
            sources[#sources + 1], last = source, source or last
        end
    end
    return records, hidden, sources, inner
end

-- Fields without which there is nothing to tell. Those that this version of Wireshark does not know are left out.
local TELLING = {}
for _, name in ipairs({ "tls.app_data", "tls.record.opaque_type", "dtls.app_data", "quic.protected_payload", "quic.payload", "oscore.code" }) do
    local is_known, field = pcall(Field.new, name)
    if is_known then
        TELLING[#TELLING + 1] = field
    end
end

local function is_telling()
    for _, field in ipairs(TELLING) do
        if field() then
            return true
        end
    end
    return false
end

function contents.dissector(frame, _, tree)
    -- looking through all fields is most of what the engine costs
    if not is_telling() then
        return
    end
    local records, hidden, sources, inner = gather(frame)
    if #records + #hidden + #inner == 0 then
        return
    end
    local branch = tree:add(contents)
    for _, length in ipairs(records) do
        branch:add(shown.record, length)
    end
    for _, record in ipairs(hidden) do
        branch:add(shown.hidden, record)
    end
    for _, source in ipairs(sources) do
        local content = source.bytes:subset(source.first, source.bytes:len() - source.first)
        branch:add(shown.content, content:tvb("content"):range())
        branch:add(shown.waiting, source.waiting)
        branch:add(shown.of, source.of)
    end
    for _, plaintext in ipairs(inner) do
        branch:add(shown.inner, plaintext:tvb("inner"):range())
    end
end

register_postdissector(contents, true)
