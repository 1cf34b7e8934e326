-- Records of TLS (RFC 8446 §5, RFC 5246 §6.2) and DTLS (RFC 6347 §4.1, RFC 9146, RFC 9147 §4): what they add to their content, by the cipher suite.
-- Handshake, alert and ChangeCipherSpec records are security as a whole; of application data the content is opaque where it is not opened.

local fields = require("pcapstat.fields")

local records = {}

local floor = math.floor
records.PORTS = { [5684] = true, [8883] = true, [443] = true, [8443] = true, [4433] = true }

local CHANGE_CIPHER_SPEC, HANDSHAKE, APPLICATION_DATA, CID = 20, 22, 23, 25
local KINDS = {
    [20] = "Change Cipher Spec", [21] = "Alert", [22] = "Handshake", [23] = "Application Data", [24] = "Heartbeat", [25] = "tls12_cid",
    [26] = "ACK",
}
local SERVER_HELLO, SUPPORTED_VERSIONS, ENCRYPT_THEN_MAC = 2, 43, 22
local TLS_HEADER, DTLS_HEADER, HANDSHAKE_HEADER, DTLS_HANDSHAKE_HEADER = 5, 13, 4, 12
local HASHES = { SHA384 = 48, SHA256 = 32, SHA = 20, MD5 = 16 }
-- JDK's TLS 1.3 pads each record with so many bytes.
local JDK_PADDING = 16
-- EndOfEarlyData, a Certificate without any; CertificateVerify without its signature; signatures of curves, and of RSA with keys of 1,024 to 4,096 bits
-- (RFC 8446 §4.5, §4.4.2, §4.4.3).
local SHORT, VERIFY, CURVES, RSA = { 4, 8 }, 8, { 64, 139 }, { 128, 512 }
-- Versions of TLS: the last without an explicit vector (RFC 2246 §6.2.3.2); drafts of TLS 1.3, those before the second had no session ID in ServerHello.
local TLS_1_0, DRAFTS, DRAFT_WITH_SESSION_ID = 0x0301, 0x7f00, 0x7f16

local function u16(bytes, at)
    local high, low = bytes:byte(at, at + 1)
    return low and high * 256 + low
end

-- What a cipher suite does to a record, by its IANA name.
local function protection(name)
    local is_13 = not name:find("_WITH_", 1, true)
    local mac = HASHES[name:match("_(%w+)$")] or 0
    if name:find("CHACHA20", 1, true) then
        return { nonce = 0, tag = 16, mac = mac }
    elseif name:find("_GCM", 1, true) or name:find("_CCM", 1, true) then
        return { nonce = is_13 and 0 or 8, tag = name:find("_CCM_8", 1, true) and 8 or 16, mac = mac }
    elseif name:find("_CBC", 1, true) then
        local is_short = name:find("DES", 1, true) or name:find("IDEA", 1, true) or name:find("RC2", 1, true)
        return { block = is_short and 8 or 16, mac = mac }
    end
    return { nonce = 0, tag = mac, mac = mac }
end

-- Content of a protected record of `fragment` bytes: the most that it can hold; none where the suite is not known.
local function content_bytes(agreed, fragment)
    local suite = agreed and agreed.protection
    if not suite then
        return nil
    end
    local content
    if suite.block then
        local vector = agreed.has_vector and suite.block or 0
        local outside = agreed.is_encrypt_then_mac and suite.mac or 0
        content = fragment - vector - outside - (suite.mac - outside) - 1
    else
        content = fragment - suite.nonce - suite.tag - (agreed.is_13 and 1 or 0)
    end
    return content >= 0 and content or nil
end

-- Walks a ServerHello's extensions (RFC 8446 §4.1.3).
local function read_extensions(agreed, bytes, at)
    local behind = at + 2 + (u16(bytes, at) or 0)
    at = at + 2
    while at + 4 <= behind do
        local kind, length = u16(bytes, at), u16(bytes, at + 2)
        if not length then
            return
        end
        if kind == SUPPORTED_VERSIONS then
            agreed.version, agreed.is_13 = u16(bytes, at + 4), true
        elseif kind == ENCRYPT_THEN_MAC then
            agreed.is_encrypt_then_mac = true
        end
        at = at + 4 + length
    end
end

-- What a ServerHello agreed. Wireshark names the cipher suite: the last one of the frame is the server's choice.
local function server_hello(bytes, at, field, is_datagram)
    local infos = { field() }
    local chosen = infos[#infos]
    local name = chosen and chosen.display:match("TLS_[%w_]+")
    local version, session_id = u16(bytes, at) or 0, bytes:byte(at + 34)
    local is_draft = version >= DRAFTS and version < DRAFT_WITH_SESSION_ID
    local agreed = {
        version = version, protection = name and protection(name), suite = name, is_13 = is_draft,
        has_vector = is_datagram or version > TLS_1_0,
    }
    if session_id and not is_draft then
        read_extensions(agreed, bytes, at + 35 + session_id + 3)
    end
    return agreed
end

local function new_message(protocol, content_type)
    return {
        protocol = protocol, kind = KINDS[content_type] or "", variant = "",
        security = 0, header = 0, option = 0, payload = 0, opaque = 0, content_type = content_type,
    }
end

local function is_all_security(message, len)
    message.security, message.opaque, message.is_handshake = len, 0, true
end

-- Application data: the content is opaque, where its size follows from the suite.
local function protect(message, agreed, header, fragment)
    local content = content_bytes(agreed, fragment)
    message.plaintext = content
    message.opaque = content or fragment
    message.security = header + fragment - message.opaque
    message.fragment = fragment
    message.is_encrypted = true
end

local function is_padded(content, bytes)
    return content == bytes or content == bytes + JDK_PADDING
end

local function is_signature(bytes)
    return bytes >= CURVES[1] and bytes <= CURVES[2] or bytes >= RSA[1] and bytes <= RSA[2] and bytes % RSA[1] == 0
end

-- What a record may be of the client's last flight by its size, as the core judges it: its Finished ends it; the first may be all of it, or what
-- is short; later ones have a signature. None where it is data.
local function part_of_flight(connection, fragment)
    local suite, content = connection.agreed.protection, content_bytes(connection.agreed, fragment)
    if not content then
        return "inner"
    end
    local finished = HANDSHAKE_HEADER + suite.mac
    if is_padded(content, finished) then
        return "last"
    end
    local may_be
    if connection.hidden == "server" then
        may_be = content > finished or is_padded(content, SHORT[1]) or is_padded(content, SHORT[2])
    else
        may_be = is_signature(content - VERIFY) or is_signature(content - VERIFY - JDK_PADDING)
    end
    return (may_be or connection.has_early_data) and "inner" or nil
end

-- Whether a record of TLS 1.3 that looks like application data is taken for the handshake: the server's from its ServerHello on until the
-- client has answered, the client's up to the end of its flight.
local function is_hidden_handshake(connection, fragment, is_client)
    local hidden = connection.hidden
    if hidden == "server" and not is_client then
        return true
    elseif hidden and is_client then
        local part = part_of_flight(connection, fragment)
        connection.hidden = part == "inner" and "client" or nil
        return part ~= nil
    end
    connection.hidden = nil
    return false
end

-- A ClientHello in the format of SSL 2.0 (RFC 5246 Appendix E.2), whose length has the topmost bit.
local function read_sslv2(bytes)
    local message, len = new_message("tls", HANDSHAKE), 2 + u16(bytes, 1) % 0x8000
    is_all_security(message, len)
    return message, len
end

-- A record of TLS. `shown_type` is the content type that Wireshark found inside, where it opened it.
function records.read_tls(bytes, connection, side, shown_type)
    local content_type, fragment = bytes:byte(1), u16(bytes, 4)
    if content_type >= 0x80 then
        return read_sslv2(bytes)
    end
    local message = new_message("tls", content_type)
    local len = TLS_HEADER + fragment
    if content_type ~= APPLICATION_DATA then
        is_all_security(message, len)
        if content_type == HANDSHAKE and bytes:byte(6) == SERVER_HELLO and not connection.agreed then
            connection.agreed = server_hello(bytes, TLS_HEADER + HANDSHAKE_HEADER + 1, fields["tls.handshake.ciphersuite"])
            connection.hidden = connection.agreed.is_13 and "server" or nil
        end
        return message, len
    end
    connection.has_early_data = connection.has_early_data or not connection.agreed and side.direction == "c2s"
    local is_hidden = connection.hidden and is_hidden_handshake(connection, fragment, side.direction == "c2s")
    protect(message, connection.agreed, TLS_HEADER, fragment)
    if is_hidden or (shown_type and shown_type ~= APPLICATION_DATA) then
        message.kind = shown_type and KINDS[shown_type] or message.kind
        is_all_security(message, len)
        message.is_encrypted = false
    end
    return message, len
end

-- The unified header of DTLS 1.3 (RFC 9147 §4): 001CSLEE.
local function read_unified(bytes, connection, len)
    local first = bytes:byte(1)
    local has_id, is_long, has_length = floor(first / 16) % 2 == 1, floor(first / 8) % 2 == 1, floor(first / 4) % 2 == 1
    local header = 1 + (is_long and 2 or 1) + (has_length and 2 or 0) + (has_id and connection.connection_id or 0)
    local message = new_message("dtls", nil)
    local is_handshake = first % 4 == 2
    message.kind = is_handshake and "Handshake" or "Application Data"
    protect(message, connection.agreed, header, len - header)
    if is_handshake then
        is_all_security(message, len)
    end
    return message, len
end

-- Length of the header of a record of `len` bytes: with a connection ID (RFC 9146 §4) the one whose length field fits the rest.
local function header_bytes(bytes, content_type, len)
    for size = 0, content_type == CID and len - DTLS_HEADER or 0 do
        if u16(bytes, 12 + size) == len - DTLS_HEADER - size then
            return DTLS_HEADER + size
        end
    end
    return DTLS_HEADER
end

-- A record of DTLS, `len` bytes as Wireshark delimits it.
function records.read_dtls(bytes, connection, side, len)
    local content_type = bytes:byte(1)
    if floor(content_type / 32) == 1 then
        return read_unified(bytes, connection, len)
    end
    local message = new_message("dtls", content_type)
    local epoch = u16(bytes, 4)
    local header = header_bytes(bytes, content_type, len)
    local fragment = len - header
    if content_type == HANDSHAKE and epoch == 0 then
        is_all_security(message, len)
        if bytes:byte(14) == SERVER_HELLO then
            connection.agreed = server_hello(bytes, DTLS_HEADER + DTLS_HANDSHAKE_HEADER + 1, fields["dtls.handshake.ciphersuite"], true)
        end
    elseif content_type == APPLICATION_DATA or (content_type == CID and not side.is_finished_due) then
        protect(message, connection.agreed, header, fragment)
    else
        is_all_security(message, len)
        side.is_finished_due = content_type == CHANGE_CIPHER_SPEC
    end
    return message, len
end

return records
