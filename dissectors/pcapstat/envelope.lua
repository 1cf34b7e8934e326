-- Opens a frame down to its UDP or TCP payload: what link, IP and transport headers take of it, and of the frames of earlier fragments.

local fields = require("pcapstat.fields")

local envelope = {}

local ICMP, IPV6_FRAGMENT, ICMPV6 = 1, 44, 58
local IPV6_HEADER, FRAGMENT_HEADER = 40, 8

-- Accounts of fragments by frame, until their datagram is whole.
local fragments = {}
local first_abs_s

function envelope.init()
    fragments, first_abs_s = {}, nil
end

-- Nanoseconds since the capture's first frame. Times as Lua numbers since 1970 would lose 100 ns; the relative ones do not, but a time
-- reference that the user sets moves them.
function envelope.time_ns(pinfo)
    local rel_s, abs_s = pinfo.rel_ts, pinfo.abs_ts
    first_abs_s = first_abs_s or abs_s - rel_s
    local by_clock_s = abs_s - first_abs_s
    if math.abs(by_clock_s - rel_s) > 1e-3 then
        rel_s = by_clock_s
    end
    return math.floor(rel_s * 1e9 + 0.5)
end

-- An IP header: length of its packet, its own length, the protocol inside, and whether it is a fragment's. TSO leaves a length of 0.
local function ip_header(ip, rest)
    local bytes = ip.source:raw(ip.offset, 20)
    local first, _, third, fourth, fifth, sixth, next_header, fragment_low, _, protocol = bytes:byte(1, 10)
    if first >= 0x60 then
        local total = IPV6_HEADER + fifth * 256 + sixth
        local is_fragment = next_header == IPV6_FRAGMENT
        return total, IPV6_HEADER + (is_fragment and FRAGMENT_HEADER or 0), next_header, is_fragment
    end
    local total = third * 256 + fourth
    local is_fragment = (next_header % 64) * 256 + fragment_low > 0
    return total > 0 and total or rest, (first % 16) * 4, protocol, is_fragment
end

-- The frames of earlier fragments add their headers and data.
local function reassembled(number, link, padding, header)
    local account = { link, padding, header, 0, 0, 0, frame = number }
    for _, name in ipairs({ "ip.fragment", "ipv6.fragment" }) do
        for _, info in ipairs({ fields[name]() }) do
            local before = fragments[info.value]
            if before and info.value ~= number then
                for at = 1, 3 do
                    account[at] = account[at] + before[at]
                end
                account.frame = math.min(account.frame, info.value)
                fragments[info.value] = nil
            end
        end
    end
    return account
end

-- Length of a TCP or UDP header. Wireshark's field is as long as that only where its tree is shown.
local function header_bytes(bytes, is_tcp)
    return is_tcp and math.floor((bytes:byte(13) or 0x50) / 16) * 4 or 8
end

-- Length of the payload behind a header in an IP packet of which `rest` bytes are left.
local function payload_bytes(bytes, is_tcp, rest)
    if is_tcp then
        return rest - header_bytes(bytes, true)
    end
    local high, low = bytes:byte(5, 6)
    local told = high * 256 + low
    return (told >= 8 and told <= rest) and told - 8 or rest - 8
end

local function find_transport()
    local tcp = fields.tcp()
    if tcp then
        return tcp, true
    end
    return fields.udp(), false
end

-- The packet that a frame completes: headers as in `pieces`, payload bytes, stream, TCP's sequence number and flags. None where there is
-- no UDP or TCP, where it is quoted by ICMP, and where IP has to be written out first (6LoWPAN).
function envelope.open(tvb, pinfo)
    local ip = fields.ip() or fields.ipv6()
    if not ip or ip.source:len() ~= tvb:len() then
        return nil
    end
    local link = ip.offset
    local wire = pinfo.len
    local total, header, protocol, is_fragment = ip_header(ip, wire - link)
    if protocol == ICMP or protocol == ICMPV6 then
        return nil
    end
    local padding = math.max(0, wire - link - total)
    local transport, is_tcp = find_transport()
    if not transport then
        if is_fragment then
            fragments[pinfo.number] = { link, padding, header }
        end
        return nil
    end
    local headers, rest
    if is_fragment then
        headers = reassembled(pinfo.number, link, padding, header)
        rest = transport.source:len()
    else
        local before = transport.offset - link
        headers, rest = { link, padding, before, 0, 0, 0 }, total - before
    end
    local bytes = transport.source:raw(transport.offset, math.min(14, transport.source:len() - transport.offset))
    headers[4] = header_bytes(bytes, is_tcp)
    local packet = {
        number = pinfo.number,
        first = headers.frame or pinfo.number,
        time_ns = envelope.time_ns(pinfo),
        headers = headers,
        payload = payload_bytes(bytes, is_tcp, rest),
        item = transport,
        payload_at = transport.offset + headers[4],
        is_tcp = is_tcp,
        source_port = pinfo.src_port,
        destination_port = pinfo.dst_port,
    }
    if is_tcp and #bytes >= 14 then
        local a, b, c, d = bytes:byte(5, 8)
        packet.sequence = ((a * 256 + b) * 256 + c) * 256 + d
        packet.flags = bytes:byte(14)
    end
    packet.stream = (is_tcp and fields["tcp.stream"]() or fields["udp.stream"]()).value
    return packet
end

return envelope
