-- Which control packets belong together (MQTT 5 §4.3, §4.4), also those of MQTT-SN; and which delivery carries on which publication: the same
-- topic and payload, in another session, and not before that has subscribed, where the capture shows its beginning. With RETAIN a server sends what it
-- has kept, and to those that ask for messages as published also what it forwards: what was published after the subscriber's last SUBSCRIBE; where the
-- capture shows none, the subscription is older, and not why it is sent.

local exchanges = require("pcapstat.exchanges")

local pairing = {}

local CONNECT, CONNACK, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP, SUBSCRIBE = 1, 2, 3, 4, 5, 6, 7, 8
local SUBACK, UNSUBSCRIBE, UNSUBACK, PINGREQ, PINGRESP, AUTH, REGISTER, REGACK = 9, 10, 11, 12, 13, 15, 20, 21
local WILLTOPICUPD, WILLTOPICRESP, WILLMSGUPD, WILLMSGRESP = 22, 23, 24, 25
local FAILURE = 0x80
local KINDS = { [-1] = "PUBLISH QoS -1", [0] = "PUBLISH QoS 0", "PUBLISH QoS 1", "PUBLISH QoS 2" }
-- How long a publication waits for deliveries, in capture time.
local WAIT_NS = 120e9

-- Publications (their exchanges) by topic and payload, and the time of the last one. Those that nothing asked for within two waits are forgotten with `older`.
local recent, older, turned_ns, published_ns = {}, {}, 0, 0

function pairing.init()
    recent, older, turned_ns, published_ns = {}, {}, 0, 0
end

local function publications_of(key)
    recent[key] = recent[key] or older[key]
    return recent[key]
end

local function key_of(message)
    return (message.topic or "") .. "\0" .. (message.digest or "")
end

local function publish(exchange, message)
    local key = key_of(message)
    published_ns = message.time_ns
    if published_ns - turned_ns > WAIT_NS then
        recent, older, turned_ns = {}, recent, published_ns
    end
    local list = publications_of(key) or {}
    recent[key] = list
    list[#list + 1] = exchange
end

-- CONNECT, CONNACK or SUBSCRIBE: publications from then on may be forwarded. In a session that began before, or is not captured from its start, the
-- subscription may be older than the capture shows.
local function subscribed(message, talk)
    talk.is_retain_as_published = talk.is_retain_as_published or message.is_retain_as_published
    if message.number == SUBSCRIBE then
        talk.retained_since_ns = talk.is_retain_as_published and message.time_ns or math.huge
        talk.subscribed_ns = talk.subscribed_ns or message.time_ns -- which need not wait for CONNACK (MQTT 5 §3.1.4)
    elseif message.is_new_session then
        talk.new_session_ns = message.time_ns
        talk.subscribed_ns = message.number == CONNACK and talk.subscribed_ns or nil
    end
end

local function forwarded_since_ns(message)
    local talk = message.stream
    local since_ns = talk.new_session_ns and (talk.subscribed_ns or talk.new_session_ns) or -math.huge
    return message.retain and math.max(since_ns, talk.retained_since_ns or since_ns) or since_ns
end

-- The earliest publication behind the last that this session was given.
local function find(message)
    local since_ns = forwarded_since_ns(message)
    local list, found = publications_of(key_of(message)) or {}, nil
    for at = #list, 1, -1 do
        local publication = list[at]
        local is_old = publication.time_ns < since_ns or published_ns - publication.time_ns > WAIT_NS
        if is_old or publication.delivered_to and publication.delivered_to[message.stream] then
            break
        end
        found = not publication.is_refused and publication or found
    end
    return found
end

local function deliver(exchange, message)
    local publication = find(message)
    if not publication then
        return
    end
    publication.delivered_to, publication.deliveries = publication.delivered_to or {}, publication.deliveries or {}
    publication.delivered_to[message.stream] = true
    publication.deliveries[#publication.deliveries + 1] = message.frame
    exchange.parent, exchange.delay_ns = publication, message.time_ns - publication.time_ns
end

-- Whether a request is sent again: by DUP, or where its exchange is open, over datagrams (MQTT-SN 1.2 §6.13).
local function is_again(message)
    return message.dup or message.protocol == "mqttsn"
end

local function open_in(queue, kind, message)
    if queue[1] and message.protocol == "mqttsn" then
        exchanges.join_again(queue[1], message)
        return
    end
    local exchange = exchanges.open(kind, message)
    exchange.without_answer = "unanswered"
    queue[#queue + 1] = exchange
end

-- Ends an exchange with its only answer.
local function answer(exchange, message)
    if exchange then
        exchanges.join(exchange, message)
        exchanges.respond(exchange, message)
        exchanges.finish(exchange, "complete")
    end
end

-- A PUBLISH or PUBREL of a flow that an earlier connection of the session began (MQTT 5 §4.4).
local function carry_over(message, from)
    local exchange = exchanges.open(KINDS[message.qos or 2], message)
    exchange.resource = message.topic
    exchanges.count_again(exchange, message)
    exchange.without_answer = "unanswered"
    from.publishes[message.id] = { exchange = exchange }
end

local function begin(message, from, is_client)
    local exchange = exchanges.open(KINDS[message.qos or -1] or "PUBLISH", message)
    exchange.payload, exchange.resource = message.payload, message.topic
    message.is_data = true
    if is_client then
        publish(exchange, message)
    else
        deliver(exchange, message)
    end
    if (message.qos or 0) == 0 then
        exchanges.finish(exchange, "complete")
        return
    elseif not message.id then
        -- where the identifier was not captured nobody knows what acknowledges it
        exchanges.finish(exchange, "ambiguous")
        return
    end
    exchange.without_answer = "unanswered"
    message.expects_ack = true
    from.publishes[message.id] = { exchange = exchange }
end

local function place_publish(message, from, _, _, is_client)
    local id = (message.qos or 0) > 0 and message.id
    local flow = id and from.publishes[id]
    if flow and message.dup then
        exchanges.join_again(flow.exchange, message)
        return
    elseif flow then
        exchanges.finish(flow.exchange, "unanswered")
    end
    if id and message.dup and message.stream.is_resumed then
        carry_over(message, from)
        return
    end
    begin(message, from, is_client)
end

local function place_acknowledgement(message, _, peer)
    local flow = message.id and peer.publishes[message.id]
    if not flow then
        return
    end
    local is_refusal = message.number ~= PUBCOMP and (message.result or 0) >= FAILURE
    local is_last = message.number ~= PUBREC or is_refusal
    -- its receiver delivers it to nobody
    flow.exchange.is_refused = flow.exchange.is_refused or is_refusal
    exchanges.join(flow.exchange, message)
    if message.number ~= PUBCOMP then
        exchanges.acknowledge(flow.exchange, message)
    end
    if is_last then
        peer.publishes[message.id] = nil
        exchanges.respond(flow.exchange, message)
        exchanges.finish(flow.exchange, "complete")
        message.gives_ack = true
    end
end

local function place_release(message, from)
    local flow = message.id and from.publishes[message.id]
    if flow and (message.dup or flow.is_released and is_again(message)) then
        exchanges.join_again(flow.exchange, message)
    elseif flow then
        flow.is_released = true
        exchanges.join(flow.exchange, message)
    elseif message.id and message.stream.is_resumed then
        carry_over(message, from)
    end
end

local function request_key(message, kind)
    return kind * 65536 + (message.id or 0)
end

local function place_request(message, _, _, talk)
    subscribed(message, talk)
    local key = request_key(message, message.number)
    if talk.requests[key] and is_again(message) then
        exchanges.join_again(talk.requests[key], message)
        return
    elseif talk.requests[key] then
        exchanges.finish(talk.requests[key], "unanswered")
    end
    talk.requests[key] = exchanges.open(message.kind, message)
    talk.requests[key].without_answer = "unanswered"
end

local function answered_by(kind)
    return function(message, _, _, talk)
        local key = request_key(message, kind)
        answer(talk.requests[key], message)
        talk.requests[key] = nil
    end
end

local function place_connect(message, _, _, talk)
    subscribed(message, talk)
    open_in(talk.connects, "CONNECT", message)
end

local function place_connack(message, _, _, talk)
    subscribed(message, talk)
    talk.is_resumed = message.is_session_present
    answer(table.remove(talk.connects, 1), message)
end

local function place_auth(message, _, _, talk)
    if talk.connects[1] then
        exchanges.join(talk.connects[1], message)
    end
end

local PLACES = {
    [CONNECT] = place_connect,
    [CONNACK] = place_connack,
    [PUBLISH] = place_publish,
    [PUBACK] = place_acknowledgement,
    [PUBREC] = place_acknowledgement,
    [PUBREL] = place_release,
    [PUBCOMP] = place_acknowledgement,
    [SUBSCRIBE] = place_request,
    [SUBACK] = answered_by(SUBSCRIBE),
    [UNSUBSCRIBE] = place_request,
    [UNSUBACK] = answered_by(UNSUBSCRIBE),
    [PINGREQ] = function(message, _, _, talk) open_in(talk.pings, "PINGREQ", message) end,
    [PINGRESP] = function(message, _, _, talk) answer(table.remove(talk.pings, 1), message) end,
    [AUTH] = place_auth,
    [REGISTER] = place_request,
    [REGACK] = answered_by(REGISTER),
    [WILLTOPICUPD] = place_request,
    [WILLTOPICRESP] = answered_by(WILLTOPICUPD),
    [WILLMSGUPD] = place_request,
    [WILLMSGRESP] = answered_by(WILLMSGUPD),
}

function pairing.place(message, from, peer)
    local talk = message.stream
    talk.requests, talk.connects, talk.pings = talk.requests or {}, talk.connects or {}, talk.pings or {}
    from.publishes, peer.publishes = from.publishes or {}, peer.publishes or {}
    local place = PLACES[message.number]
    if place then
        place(message, from, peer, talk, from == talk.client)
    end
end

-- The state of a QoS flow behind this message (MQTT 5 §4.3): who waits for what.
local STATES = {
    [PUBACK] = "acknowledged",
    [PUBREC] = "received, waits for PUBREL",
    [PUBREL] = "released, waits for PUBCOMP",
    [PUBCOMP] = "complete",
}

function pairing.state(message)
    if message.number == PUBLISH then
        local waits = { [0] = "sent, no acknowledgement asked for", "sent, waits for PUBACK", "sent, waits for PUBREC" }
        return waits[message.qos or 0]
    elseif message.number == PUBREC and (message.result or 0) >= FAILURE then
        return "refused"
    end
    return message.exchange and STATES[message.number]
end

return pairing
