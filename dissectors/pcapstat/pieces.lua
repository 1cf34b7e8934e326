-- Runs of payload bytes that remember their frames, and the sharing of a frame's headers among its messages so that the parts add up:
-- the rule of the CLI (table messages). Headers are arrays: link, padding, IP, transport, security, carrier (a WebSocket frame's header).

local pieces = {}

local floor = math.floor
local HEADERS = 6

-- The payload of a packet: `total` bytes behind `headers`.
function pieces.whole(headers, total, frame)
    return { headers = headers, total = total, from = 0, to = total, frame = frame }
end

-- Adds the piece's share of its headers to `sum`, in proportion to its bytes: each edge between two runs is rounded down, and a share is
-- the distance of its edges, so that the shares of a packet's runs are its headers exactly.
local function add_share(sum, piece, from, to)
    local headers, total = piece.headers, piece.total
    if to - from == total then
        for at = 1, HEADERS do
            sum[at] = sum[at] + headers[at]
        end
        return
    end
    for at = 1, HEADERS do
        local whole = headers[at]
        if whole > 0 then
            sum[at] = sum[at] + floor(whole * to / total) - floor(whole * from / total)
        end
    end
end

-- Bytes in order that wait for the messages made of them.
function pieces.queue()
    return { first = 1, last = 0, bytes = 0 }
end

function pieces.clear(queue)
    for at = queue.first, queue.last do
        queue[at] = nil
    end
    queue.first, queue.last, queue.bytes = 1, 0, 0
end

function pieces.push(queue, piece)
    local count = piece.to - piece.from
    if count > 0 then
        queue.last = queue.last + 1
        queue[queue.last] = piece
        queue.bytes = queue.bytes + count
    end
end

-- Takes `count` bytes off the queue. Returns their share of headers and the first frame that carries some of them.
function pieces.take(queue, count)
    local next_piece = queue[queue.first]
    if next_piece and next_piece.from == 0 and next_piece.to == count and next_piece.total == count then
        queue[queue.first] = nil
        queue.first, queue.bytes = queue.first + 1, queue.bytes - count
        next_piece.from = count
        return next_piece.headers, next_piece.frame
    end
    local sum, frame_first = { 0, 0, 0, 0, 0, 0 }, nil
    while count > 0 and queue.first <= queue.last do
        local piece = queue[queue.first]
        frame_first = frame_first or piece.frame
        local used = math.min(count, piece.to - piece.from)
        add_share(sum, piece, piece.from, piece.from + used)
        count, queue.bytes = count - used, queue.bytes - used
        piece.from = piece.from + used
        if piece.from == piece.to then
            queue[queue.first] = nil
            queue.first = queue.first + 1
        end
    end
    return sum, frame_first
end

return pieces
