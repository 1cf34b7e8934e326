-- What Wireshark opened in a frame, record by record: the decrypted bytes from the first message in them on. Only frames with records of
-- application data are looked at, since looking at all fields of a frame takes long.

local contents = {}

local CARRIED = { mqtt = true, coap = true, websocket = true }
local SEGMENT = "tls.segment.data"
local RECORD = { ["tls.app_data"] = true, ["dtls.app_data"] = true }
-- Bytes kept to know a message's start again.
local HEAD = 256

local function ends_before(one, other)
    return one <= other
end

-- Whether two fields stand in the same bytes: Wireshark orders only those, and refuses others.
local function is_same_source(one, other)
    local is_comparable, is_before = pcall(ends_before, one, other)
    return is_comparable and (is_before or other <= one)
end

contents.is_same_source = is_same_source

-- The decrypted sources of this frame in the order of the tree: bytes, and how many at their end wait for the rest of their message.
local function sources()
    local found, last = {}, nil
    local is_behind_record = false
    for _, info in ipairs({ all_field_infos() }) do
        local name = info.name
        if RECORD[name] then
            is_behind_record = true
        elseif is_behind_record and info.len > 0 and (CARRIED[name] or name == SEGMENT) then
            local is_further = last and is_same_source(info, last.info) and (info.offset > last.offset or name ~= last.name)
            if not is_further then
                last = { info = info, name = name, first = info.offset, bytes = info.source:raw(info.offset), waiting = 0 }
                found[#found + 1] = last
            end
            last.offset = info.offset
            if name == SEGMENT then
                last.waiting = info.len
            end
        end
    end
    return found
end

-- How many bytes a source adds to those before it: a message that several records carry comes whole, with its start once more.
local function added_bytes(waiting, source)
    local is_again = waiting.bytes > 0 and #source.bytes >= waiting.bytes and source.bytes:sub(1, #waiting.head) == waiting.head
    local new = is_again and source.bytes:sub(waiting.bytes + 1) or source.bytes
    if is_again or source.waiting < #new then
        waiting.bytes, waiting.head = 0, ""
    end
    local rest = source.waiting > 0 and new:sub(-source.waiting) or ""
    waiting.bytes = waiting.bytes + #rest
    waiting.head = (waiting.head .. rest):sub(1, HEAD)
    return #new
end

-- How much of `content` each record has, of which each has room for so much. Where there is less than room, all pad alike, or the last ones.
local function divide(content, rooms)
    local spare, least = -content, math.huge
    for _, room in ipairs(rooms) do
        spare, least = spare + room, math.min(least, room)
    end
    spare = math.max(0, spare)
    local shares, is_alike = {}, spare % #rooms == 0 and least >= spare / #rooms
    for at, room in ipairs(rooms) do
        shares[at] = is_alike and room - math.floor(spare / #rooms) or math.min(room, content)
        content = content - shares[at]
    end
    return shares
end

-- Bytes of content of each record of application data in this frame; none where nothing of them was opened.
function contents.of(records, side)
    local found = sources()
    if #found == 0 then
        return nil
    end
    side.waiting = side.waiting or { bytes = 0, head = "" }
    local total, rooms = 0, {}
    for _, source in ipairs(found) do
        total = total + added_bytes(side.waiting, source)
    end
    for at, record in ipairs(records) do
        rooms[at] = record.plaintext or record.fragment
    end
    return divide(total, rooms)
end

return contents
