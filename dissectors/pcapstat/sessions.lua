-- The sums of each session (a stream that speaks a protocol of the dissectors), and the figures made of them: Time1, Time2, ΔTime, goodput, throughput,
-- overhead, as `pcapstat summarize` makes them. Every frame of a session keeps what they were when it came.

local layers = require("pcapstat.layers")
local talks = require("pcapstat.talks")

local sessions = {}

local CONNECT = 1
-- The first of a packet's headers that each layer counts: frame, ip, transport, security, application.
local FIRST_HEADER = { 1, 3, 5, 5, 5 }
-- Preference of Time1: automatic, application, security, transport.
local TIME1 = { { "application", "security", "transport" }, { "application" }, { "security" }, { "transport" } }

local list = {}
local layer, time1_choice = 1, 1

function sessions.init(chosen_layer, chosen_time1)
    talks.init()
    list = {}
    layer, time1_choice = chosen_layer, chosen_time1
end

local function new_direction()
    return { messages = 0, bytes = 0, layer_bytes = 0 }
end

local function session_of(stream)
    if not stream.session then
        stream.session = {
            stream = stream, bytes = 0, messages = 0, c2s = new_direction(), s2c = new_direction(),
            time1 = { transport = stream.time_first_ns }, frame_first = stream.frame_first,
        }
    end
    return stream.session
end

local function is_opening(message)
    if message.protocol == "coap" then
        local code = message.inner_code or message.code or 0
        return code > 0 and code < 32
    end
    return message.number == CONNECT
end

-- Time1: the first message that opens the application's session; where none does, its first message (formula 1 of metrics.md).
local function learn_time1(session, message)
    local time1 = session.time1
    if message.is_handshake then
        time1.security = time1.security or message.time_ns
        return
    end
    local opens = is_opening(message)
    if message.carried_by == "websocket" and not time1.application then
        -- the handshake of the WebSocket opens the session (RFC 6455 §4)
        time1.application, session.is_opening_seen = session.stream.payload_ns, true
    end
    if not message.is_encrypted and not time1.application then
        time1.application, session.is_opening_seen = message.time_ns, opens
    end
    if opens and not session.is_opening_seen and not session.is_data_seen then
        time1.application, session.is_opening_seen = message.time_ns, true
    end
end

local function count_data(session, message)
    local direction = session[message.side.direction]
    session.is_data_seen = true
    direction.messages = direction.messages + 1
    direction.bytes = direction.bytes + message.payload
    direction.layer_bytes = direction.layer_bytes + layers.bytes(message, layer)
    direction.last_ns, direction.last_ack_ns = message.time_ns, nil
    direction.last_data = message.expects_ack and message.exchange or nil
end

-- The receiver acknowledges the last data message: Time2 of CON, QoS 1 and QoS 2.
local function count_acknowledgement(session, message)
    local direction = session[message.side.direction == "c2s" and "s2c" or "c2s"]
    if direction.last_data == message.exchange and not direction.last_ack_ns then
        direction.last_ack_ns = message.time_ns
    end
end

local function count(session, message)
    session.messages = session.messages + 1
    session.protocol = message.protocol
    session.client_identifier = session.client_identifier or message.client_identifier
    if layer >= 4 then
        session.bytes = session.bytes - message.security
    end
    learn_time1(session, message)
    if message.is_data then
        count_data(session, message)
    end
    if message.gives_ack and message.exchange then
        count_acknowledgement(session, message)
    end
end

local function count_frame(session, packet)
    for at = FIRST_HEADER[layer], 4 do
        session.bytes = session.bytes + packet.headers[at]
    end
    session.bytes = session.bytes + math.max(0, packet.payload)
    session.frame_last = packet.number
end

-- Time1 by the preference, and which one it is.
local function time1_of(session)
    for _, name in ipairs(TIME1[time1_choice]) do
        if session.time1[name] then
            return session.time1[name], name
        end
    end
    return nil
end

local function ratio(value, delta_ns)
    return delta_ns and delta_ns > 0 and value * 1e9 / delta_ns or nil
end

-- The figures as they stand (formulas 1 to 4). Bytes and rates at the chosen layer; none where the capture does not show them.
function sessions.figures(session)
    local is_to_client = session.s2c.messages >= session.c2s.messages
    local main = is_to_client and session.s2c or session.c2s
    local time1_ns, time1 = time1_of(session)
    local time2_ns = main.last_data and main.last_ack_ns or main.last_ns
    local delta_ns = time1_ns and time2_ns and time2_ns - time1_ns or nil
    return {
        receiver = is_to_client and "client" or "server",
        time1_ns = time1_ns, time1 = time1, time2_ns = time2_ns, delta_ns = delta_ns,
        time2 = time2_ns and (main.last_data and main.last_ack_ns and "acknowledgement" or "arrival") or nil,
        data_messages = main.messages, data_bytes = main.bytes, session_bytes = session.bytes, messages = session.messages,
        goodput = ratio(main.bytes, delta_ns), throughput = ratio(main.layer_bytes, delta_ns),
        overhead_bytes = session.bytes - main.bytes,
        overhead_ratio = session.bytes > 0 and (session.bytes - main.bytes) / session.bytes or nil,
    }
end

-- Whether a stream speaks a protocol of the dissectors.
local function is_ours(stream)
    return stream.application ~= nil or stream.security == true
end

-- The figures of a packet's session behind it; none where the session is of no protocol of the dissectors.
function sessions.of(packet, is_new)
    if is_new or not packet.is_counted then
        packet.is_counted = true
        local session = session_of(packet.stream)
        count_frame(session, packet)
        for _, message in ipairs(packet.messages) do
            count(session, message)
        end
        packet.figures = sessions.figures(session)
        if is_ours(packet.stream) and not session.is_listed then
            session.is_listed = true
            list[#list + 1] = session
        end
    end
    return is_ours(packet.stream) and packet.figures or nil
end

-- All sessions in the order in which they were found.
function sessions.all()
    return list
end

return sessions
