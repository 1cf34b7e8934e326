-- Wireshark's own fields that the dissectors read. Extractors exist once, however many dissectors are loaded: each one costs time in every frame.
-- They have to be made while scripts load, so entry files call `prepare`.

local fields = {}

local NAMES = {
    "frame", "ip", "ipv6", "icmp", "icmpv6", "ip.fragment", "ipv6.fraghdr", "ipv6.fragment", "tcp", "udp", "tcp.stream", "udp.stream",
    "coap", "mqtt", "mqttsn", "websocket", "tls.record", "dtls.record", "tls.app_data", "dtls.app_data",
    "tls.segment.data", "tls.record.content_type", "tls.handshake.ciphersuite", "dtls.handshake.ciphersuite", "oscore.code",
}

-- Makes the extractors, by Wireshark's names. One that this version does not know finds nothing.
function fields.prepare()
    if fields.ip then
        return fields
    end
    for _, name in ipairs(NAMES) do
        local is_known, field = pcall(Field.new, name)
        fields[name] = is_known and field or function() end
    end
    return fields
end

return fields
