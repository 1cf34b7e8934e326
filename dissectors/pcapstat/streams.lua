-- Streams as their packets show them: who is the client, and each direction's bytes in order.

local pieces = require("pcapstat.pieces")

local streams = {}

local SYN, ACK = 2, 16
local MODULUS, HALF = 2 ^ 32, 2 ^ 31
-- Segments held before a hole is taken for a loss of the capture.
local HELD = 512

local known = { tcp = {}, udp = {} }

function streams.init()
    known = { tcp = {}, udp = {} }
end

local function has(flags, mask)
    return flags % (2 * mask) >= mask
end

-- `a - b` of sequence numbers (RFC 9293 §3.4).
local function distance(a, b)
    local difference = (a - b) % MODULUS
    return difference >= HALF and difference - MODULUS or difference
end

local function new_side(name)
    -- `held` are the segments behind a hole, `ahead` the bytes of the last of them that follow each other, up to the number `ahead_next`
    return { direction = name, queue = pieces.queue(), inner = pieces.queue(), held = {}, ahead = pieces.queue(), ahead_next = nil }
end

-- An address with its port.
local function endpoint(address, port)
    local text = tostring(address)
    return (text:find(":", 1, true) and "[" .. text .. "]" or text) .. ":" .. port
end

local function new_stream(packet, pinfo)
    local is_answer = packet.is_tcp and has(packet.flags, SYN) and has(packet.flags, ACK)
    local source, destination = endpoint(pinfo.src, packet.source_port), endpoint(pinfo.dst, packet.destination_port)
    return {
        client_name = is_answer and destination or source,
        server_name = is_answer and source or destination,
        client_port = is_answer and packet.destination_port or packet.source_port,
        server_port = is_answer and packet.source_port or packet.destination_port,
        is_from_start = packet.is_tcp and has(packet.flags, SYN),
        is_tcp = packet.is_tcp,
        number = packet.stream,
        client = new_side("c2s"),
        server = new_side("s2c"),
        frame_first = packet.first,
        time_first_ns = packet.time_ns,
    }
end

-- Swaps the sides of a stream that the capture did not see open, where the first speaker has the protocol's port.
function streams.decide_sides(stream, ports)
    if stream.is_from_start or not ports[stream.client_port] or ports[stream.server_port] then
        return
    end
    stream.client_port, stream.server_port = stream.server_port, stream.client_port
    stream.client_name, stream.server_name = stream.server_name, stream.client_name
    stream.client, stream.server = stream.server, stream.client
    stream.client.direction, stream.server.direction = "c2s", "s2c"
end

-- The stream of a packet and its sender's side. Equal ports are told apart by address.
function streams.of(packet, pinfo)
    local list = packet.is_tcp and known.tcp or known.udp
    local stream = list[packet.stream]
    if not stream then
        stream = new_stream(packet, pinfo)
        list[packet.stream] = stream
        if stream.client_port == stream.server_port then
            stream.client_address = tostring(pinfo.src)
        end
    end
    local is_client
    if stream.client_address then
        is_client = stream.client_address == tostring(pinfo.src)
    else
        is_client = packet.source_port == stream.client_port
    end
    return stream, is_client and stream.client or stream.server
end

local function release(side)
    local at = 1
    while at <= #side.held do
        local piece = side.held[at]
        local ahead = distance(piece.sequence, side.next)
        if ahead <= 0 then
            table.remove(side.held, at)
            streams.pass(side, piece)
            side.filled = side.filled or {}
            side.filled[#side.filled + 1] = piece.run
            at = 1
        else
            at = at + 1
        end
    end
end

-- Topic aliases that were set behind a hole count for what comes behind what has filled it by now.
local function take_over_aliases(side)
    for _, run in ipairs(side.filled or {}) do
        for alias, topic in pairs(run.aliases or {}) do
            side.queue.aliases = side.queue.aliases or {}
            side.queue.aliases[alias] = topic
        end
    end
    side.filled = nil
end

-- Puts a segment behind the bytes in order; what of it was there before is sent again, and what messages took of it behind a hole is gone.
function streams.pass(side, piece)
    local old = -distance(piece.sequence, side.next)
    if old >= piece.total then
        return
    end
    piece.from = math.max(piece.from, old)
    side.next = (piece.sequence + piece.total) % MODULUS
    pieces.push(side.queue, piece)
end

local function is_held(side, packet)
    for _, piece in ipairs(side.held) do
        if piece.sequence == packet.sequence and piece.total >= packet.payload then
            return true
        end
    end
    return false
end

-- Holds a segment behind a hole. Wireshark may show messages there before the hole is filled, as it may never be.
local function hold(side, piece)
    side.held[#side.held + 1] = piece
    if side.ahead_next ~= piece.sequence then
        side.ahead = pieces.queue()
    end
    side.ahead_next = (piece.sequence + piece.total) % MODULUS
    piece.run = side.ahead
    pieces.push(side.ahead, piece)
end

-- Gives the hole up: the stream goes on with the last bytes behind it.
local function resume(side, sequence)
    side.queue, side.ahead, side.held = side.ahead, pieces.queue(), {}
    if side.ahead_next ~= sequence then
        side.queue = pieces.queue()
    end
    side.next = sequence
end

-- Takes a packet's payload: into the queue of its direction, in order. Returns whether it brought bytes that are new, and the queue that it is in.
function streams.take(side, packet)
    local piece = pieces.whole(packet.headers, packet.payload, packet.first)
    if not packet.is_tcp then
        pieces.clear(side.queue)
        pieces.push(side.queue, piece)
        return true, side.queue
    end
    if has(packet.flags, SYN) then
        side.next = (packet.sequence + 1) % MODULUS
    end
    if packet.payload <= 0 then
        return false, side.queue
    end
    piece.sequence = packet.sequence
    side.next = side.next or packet.sequence
    if side.filled then
        take_over_aliases(side)
    end
    if distance(packet.sequence, side.next) > 0 and is_held(side, packet) then
        return false, side.ahead
    elseif distance(packet.sequence, side.next) > 0 and #side.held < HELD then
        hold(side, piece)
        return true, side.ahead
    elseif distance(packet.sequence, side.next) > 0 then
        resume(side, packet.sequence)
    end
    local before = side.queue.last
    streams.pass(side, piece)
    release(side)
    return side.queue.last > before, side.queue
end

return streams
