-- Opens a frame down to its UDP or TCP payload: what link, IP and transport headers take of it, and of the frames of earlier fragments.

local fields = require("pcapstat.fields")

local envelope = {}

local ICMP, TCP, UDP, IPV6_FRAGMENT, ICMPV6 = 1, 6, 17, 44, 58
-- Bytes read of a frame from its IP header on: the longest, and what is asked of TCP's.
local READ = 80
local IPV6_HEADER, FRAGMENT_HEADER, UDP_HEADER = 40, 8, 8
-- Bytes read of a TCP header: to its flags.
local TCP_READ = 14

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

-- An IP header: length of its packet, its own length, the protocol inside, and whether it is a fragment's; none where it is no IP header. TSO leaves
-- a length of 0.
local function ip_header(bytes, rest)
    local first, _, third, fourth, fifth, sixth, next_header, fragment_low, _, protocol = bytes:byte(1, 10)
    if not protocol then
        return nil
    elseif first >= 0x60 and first < 0x70 then
        local is_fragment = next_header == IPV6_FRAGMENT
        return IPV6_HEADER + fifth * 256 + sixth, IPV6_HEADER + (is_fragment and FRAGMENT_HEADER or 0), next_header, is_fragment
    elseif first < 0x45 or first >= 0x50 then
        return nil
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
    return is_tcp and math.floor(bytes:byte(13) / 16) * 4 or UDP_HEADER
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

-- The packet of a UDP or TCP header that begins `bytes`; all that becomes known of it has its place. None where the capture cut the header off, or
-- where Wireshark gives the packet to no stream: it does not where a length is not one.
local function new_packet(pinfo, headers, bytes, is_tcp, rest, payload_at)
    local number, stream = pinfo.number, is_tcp and fields["tcp.stream"]() or not is_tcp and fields["udp.stream"]()
    if not stream or #bytes < (is_tcp and TCP_READ or UDP_HEADER) then
        return nil
    end
    local a, b, c, d, e, f, g, h, _, _, _, _, _, flags = bytes:byte(1, TCP_READ)
    headers[4] = header_bytes(bytes, is_tcp)
    return {
        number = number, first = headers.frame or number, time_ns = envelope.time_ns(pinfo), headers = headers,
        payload = payload_bytes(bytes, is_tcp, rest), is_tcp = is_tcp, payload_at = payload_at + headers[4],
        source_port = a * 256 + b, destination_port = c * 256 + d,
        sequence = is_tcp and ((e * 256 + f) * 256 + g) * 256 + h, flags = is_tcp and flags or 0,
        stream = stream.value,
        item = false, tvb = false, is_in_frame = false, is_filling_hole = false, queue = false, messages = false,
    }
end

-- A packet whose transport header Wireshark has to point out: of a fragmented datagram, behind extension headers, in a tunnel.
local function pointed_out(pinfo, link, padding, total, header, is_fragment)
    if fields.icmp() or fields.icmpv6() then
        return nil
    end
    local transport, is_tcp = fields.tcp(), true
    if not transport then
        transport, is_tcp = fields.udp(), false
    end
    if not transport then
        if is_fragment then
            fragments[pinfo.number] = { link, padding, header }
        end
        return nil
    end
    local source = transport.source
    local bytes = source:raw(transport.offset, math.min(TCP_READ, source:len() - transport.offset))
    if is_fragment then
        local headers = reassembled(pinfo.number, link, padding, header)
        return new_packet(pinfo, headers, bytes, is_tcp, source:len(), transport.offset)
    end
    local before = transport.offset - link
    return new_packet(pinfo, { link, padding, before, 0, 0, 0 }, bytes, is_tcp, total - before, transport.offset)
end

-- The packet that a frame completes: headers as in `pieces`, payload bytes, stream, TCP's sequence number and flags. None where there is
-- no UDP or TCP, where it is quoted by ICMP, and where IP has to be written out first (6LoWPAN).
function envelope.open(tvb, pinfo)
    local ip = fields.ip() or fields.ipv6()
    if not ip then
        return nil
    end
    local link, wire = ip.offset, pinfo.len
    local bytes = tvb:raw(link, math.min(READ, tvb:len() - link))
    local total, header, protocol, is_fragment = ip_header(bytes, wire - link)
    if not total or protocol == ICMP or protocol == ICMPV6 then
        return nil
    end
    local padding = math.max(0, wire - link - total)
    local packet
    if (protocol == TCP or protocol == UDP) and not is_fragment and #bytes >= header + (protocol == TCP and TCP_READ or UDP_HEADER) then
        local headers = { link, padding, header, 0, 0, 0 }
        packet = new_packet(pinfo, headers, bytes:sub(header + 1), protocol == TCP, total - header, link + header)
    else
        packet = pointed_out(pinfo, link, padding, total, header, is_fragment)
    end
    if packet then
        packet.item, packet.tvb = ip, tvb
    end
    return packet
end

return envelope
