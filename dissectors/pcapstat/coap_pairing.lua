-- Which CoAP messages belong together: requests with their responses (RFC 7252 §5.3), messages with their acknowledgements (§4), notifications with
-- their registration (RFC 7641), blocks with their transfer (RFC 7959).

local coap = require("pcapstat.coap")
local exchanges = require("pcapstat.exchanges")
local lists = require("pcapstat.lists")
local transfers = require("pcapstat.coap_transfers")

local pairing = {}

-- RFC 7252 §4.8.2, with the default transmission parameters of §4.8; RFC 7641 §3.4.
local EXCHANGE_LIFETIME_NS, NON_LIFETIME_NS, FRESH_AFTER_NS, HALF_OF_OBSERVE = 247e9, 145e9, 128e9, 2 ^ 23
local SIGNAL = 7
local METHODS = { "GET", "POST", "PUT", "DELETE", "FETCH", "PATCH", "iPATCH" }

local function is_alive(sent, now_ns)
    return now_ns - sent.time_ns < (sent.is_con and EXCHANGE_LIFETIME_NS or NON_LIFETIME_NS)
end

local function sender_of(side)
    if not side.coap then
        side.coap = { ids = {}, requests = {}, anonymous = {}, transfers = {}, polled = {}, pings = {}, registered = {} }
    end
    return side.coap
end

local function remove(sender, exchange)
    for token, request in pairs(sender.requests) do
        if request.exchange == exchange then
            sender.requests[token] = nil
        end
    end
    lists.remove(sender.anonymous, exchange)
    lists.remove(sender.transfers, exchange)
end

local function finish(exchange, outcome)
    exchange.without_answer = nil
    exchanges.finish(exchange, outcome)
end

local function add_data(exchange, message, is_data)
    if is_data then
        message.is_data = true
        exchange.payload = exchange.payload + message.payload
    end
end

local function kind_of(message)
    return message.observe == 0 and "observe" or METHODS[coap.code_of(message)] or "request"
end

-- Ends a registration (RFC 7641 §3.6).
local function cancel(sender, registration)
    local function is_it(request)
        return request.is_observe and request.registration == registration
    end
    local found = lists.first(sender.requests, is_it) or lists.first(sender.anonymous, is_it)
    if found then
        finish(found.exchange, "cancelled")
        remove(sender, found.exchange)
    end
end

-- The exchange of the transfer that a request carries on. It takes the place of the request before, also with another token: that one is
-- answered, unless several are sent at once, which is not done with Confirmable ones.
local function carry_on(sender, message)
    local transfer = transfers.continued(sender.transfers, message)
    if not transfer then
        return nil
    end
    local before = transfer.token ~= message.token and sender.requests[transfer.token]
    if before and before.exchange == transfer.exchange and before.kind ~= "NON" then
        sender.requests[transfer.token] = nil
    end
    lists.remove(sender.anonymous, transfer.exchange)
    return transfer.exchange
end

-- Whether notifications may come for a request.
local function is_registered(request)
    return request.is_observe and request.is_answered
end

-- Whether a response may come for a request.
local function is_awaiting(request)
    return request.is_observe or not (request.is_answered or request.is_between_blocks)
end

-- How an exchange ends where no response comes to this request of it.
local function without_answer(message)
    return message.is_suppressing and "suppressed" or "unanswered"
end

-- The registration with whose token a request asks for a later block of what is observed. A token of its own is due for that (RFC 7959 §3.4),
-- with which it is a request like others.
local function observed(sender, message)
    local request = transfers.is_later_block(message) and sender.requests[message.token]
    return request and is_registered(request) and request.subject == coap.subject_of(message) and request.exchange or nil
end

local function begin(sender, message)
    local exchange = exchanges.open(kind_of(message), message)
    exchange.resource, exchange.without_answer = message.resource, without_answer(message)
    if transfers.is_later_block(message) then
        return exchange
    end
    local subject = coap.subject_of(message)
    if sender.polled[subject] then
        exchange.interval_ns = message.time_ns - sender.polled[subject]
    end
    sender.polled[subject] = message.time_ns
    return exchange
end

-- A request took the token of an old one before that was answered. A response can still name the old one by its message ID, until an empty ACK did.
local function supersede(sender, request)
    local exchange = request.exchange
    local sent = sender.ids[exchange.id]
    if sent and sent.exchange == exchange and sent.is_con and not sent.is_acknowledged then
        sent.superseded, request.is_observe, exchange.without_answer = request, false, "superseded"
    else
        finish(exchange, "superseded")
    end
end

-- A request took the token of an old one. Between two blocks a token is free for others (RFC 7252 §5.3.1); who asks anew for the same gives the
-- transfer up.
local function replace(sender, old, new, observe)
    if old.is_observe and observe == 1 then
        finish(old.exchange, "cancelled")
    elseif is_registered(old) and observe == 0 then
        finish(old.exchange, "complete")
    elseif old.is_between_blocks and old.subject ~= new.subject then
        table.insert(sender.anonymous, old)
    elseif not old.is_answered then
        lists.remove(sender.transfers, old.exchange)
        supersede(sender, old)
    end
end

local function open_anonymous(sender, request, renewed)
    local kept = {}
    for _, open in ipairs(sender.anonymous) do
        if open.exchange ~= request.exchange and open ~= renewed and (not open.is_answered or open.is_observe) then
            kept[#kept + 1] = open
        end
    end
    kept[#kept + 1] = request
    sender.anonymous = kept
    if renewed then
        replace(sender, renewed, request, 0)
    end
end

-- The registration that a request renews (RFC 7641 §3.3.1): the client asks again what it observes, with the same token.
local function renewed_by(sender, token, request)
    local function is_it(old)
        return old.is_observe and old.freshest and old.subject == request.subject and old.exchange ~= request.exchange
    end
    return lists.first(token == "" and sender.anonymous or { sender.requests[token] }, is_it)
end

-- Notes a request as open. One with the same token before it cannot be told apart from it any more (RFC 7252 §5.3.1). What renews a registration
-- goes on with it.
local function open(sender, message, request)
    local renewed = request.is_observe and renewed_by(sender, message.token, request) or nil
    if request.is_observe then
        sender.registered[message.token] = true
    end
    request.registration, request.freshest = renewed and renewed.registration or request, renewed and renewed.freshest
    if message.token == "" then
        return open_anonymous(sender, request, renewed)
    end
    local old = sender.requests[message.token]
    sender.requests[message.token] = request
    if old and old.exchange ~= request.exchange then
        replace(sender, old, request, message.observe)
    elseif old and is_registered(old) and not request.is_observe then
        sender.requests[message.token] = old
    end
end

local function place_request(message, from)
    local sender = sender_of(from)
    local carried_on = carry_on(sender, message)
    local exchange = carried_on or observed(sender, message)
    if exchange then
        exchanges.join(exchange, message)
        exchange.without_answer = carried_on and without_answer(message) or exchange.without_answer
    else
        exchange = begin(sender, message)
    end
    exchange.asked_ns = message.time_ns
    open(sender, message, {
        exchange = exchange, subject = coap.subject_of(message), kind = message.kind, is_observe = message.observe == 0, is_answered = false,
    })
    transfers.follow(sender.transfers, message, exchange, true)
    add_data(exchange, message, message.payload > 0)
    message.expects_ack = message.is_data and message.kind == "CON"
    return "request"
end

-- Whether a notification is newer than those before (RFC 7641 §3.4). So is the last one, which has no value (§3.2), and all over a reliable
-- transport, where the value means nothing (RFC 8323 §7.1).
local function is_fresh(freshest, message)
    if not freshest or not message.observe or message.is_over_tcp then
        return true
    end
    local before, value = freshest.value, message.observe
    return message.time_ns > freshest.time_ns + FRESH_AFTER_NS or (before < value and value - before < HALF_OF_OBSERVE)
        or (before > value and before - value > HALF_OF_OBSERVE)
end

local function find_anonymous(requester, asked)
    local only, count = nil, 0
    for _, request in ipairs(requester.anonymous) do
        if asked and request.exchange == asked.exchange then
            return request
        elseif not asked and is_awaiting(request) then
            only, count = request, count + 1
        end
    end
    if count > 1 then
        for _, request in ipairs(requester.anonymous) do
            if is_awaiting(request) then
                finish(request.exchange, "ambiguous")
            end
        end
    end
    return count == 1 and only or nil
end

-- The open request that a response answers: by its token, and where it comes with the ACK by the message ID of what was `asked` too
-- (RFC 7252 §5.3.2).
local function find(requester, message, asked)
    if message.token == "" then
        return find_anonymous(requester, asked)
    end
    local request = requester.requests[message.token]
    if asked and (not request or request.exchange ~= asked.exchange) then
        return asked.exchange.token == message.token and asked.superseded or nil
    end
    return request
end

-- The registration that a notification (RFC 7641 §3.2: a response with Observe option) is sent for, where that is not in the capture: nothing is
-- known of its token.
local function registered_before(requester, message)
    local is_known = requester.registered[message.token] or (message.token == "" and #requester.anonymous > 0)
    if message.observe == nil or is_known then
        return nil
    end
    local request = { exchange = { is_before_capture = true }, kind = "CON", is_observe = true, is_answered = true }
    request.registration, requester.registered[message.token] = request, true
    if message.token == "" then
        requester.anonymous[1] = request
    else
        requester.requests[message.token] = request
    end
    return request
end

-- Whether a response is a notification. As long as a request that renews a registration has got neither ACK nor answer, notifications may still
-- come that were sent before.
local function is_notified(request, message, asked)
    if not request.is_observe or transfers.is_later_block(message) then
        return false
    end
    return request.is_answered or (request.freshest and not asked and request.kind == "CON" and not request.exchange.ack_rtt_ns)
end

-- What a notification tells of the time since the one before, and of values between them.
local function compare(exchange, message, before)
    exchange.interval_ns = message.time_ns - before.time_ns
    if message.observe and not message.is_over_tcp then
        message.observe_gap = (message.observe - before.value) % 2 ^ 24 - 1
    end
end

-- A further response to a registration (RFC 7641 §3.2).
local function place_notification(requester, message, request)
    local exchange = exchanges.open("notification", message)
    exchange.parent, exchange.registration = not request.exchange.is_before_capture and request.exchange or nil, request.registration
    local fresh = is_fresh(request.freshest, message)
    if fresh and request.freshest then
        compare(exchange, message, request.freshest)
    end
    message.is_stale = not fresh
    if fresh and message.observe then
        request.freshest = { value = message.observe, time_ns = message.time_ns }
    end
    add_data(exchange, message, message.payload > 0 and coap.is_success(message) and fresh)
    if message.kind ~= "CON" then
        finish(exchange, "complete")
    end
    if message.observe == nil then
        cancel(requester, request.registration)
    end
    message.expects_ack = message.kind == "CON" and message.is_data
    return "notification"
end

-- Notes what a response says of its request; one without more to come is let go.
local function note_answer(requester, message, request, is_last, is_of_request)
    request.is_answered, request.is_between_blocks = request.is_answered or is_last, not is_last
    request.freshest = request.is_observe and message.observe and { value = message.observe, time_ns = message.time_ns } or nil
    request.is_observe = request.is_observe and (message.observe ~= nil or is_of_request)
    local is_done = is_last and not request.is_observe and request.kind ~= "NON"
    if is_done and message.token == "" then
        lists.remove(requester.anonymous, request.exchange)
    elseif is_done and requester.requests[message.token] == request then
        requester.requests[message.token] = nil
    end
end

-- Notes a response to a request. What has no more to come ends there, unless it is a registration.
local function answered(requester, message, request)
    local exchange = request.exchange
    message.is_separate = message.kind ~= "ACK" and exchange.frame_ack ~= nil
    if request.kind == "CON" then
        exchanges.acknowledge(exchange, message)
    end
    -- what is observed comes with its first block; the others are asked for by requests of their own (RFC 7959 §3.4)
    local begins = request.is_observe and message.observe ~= nil
    local is_of_request = not begins and transfers.is_step(requester.transfers, message, exchange)
    local is_last = begins or not is_of_request and not transfers.follow(requester.transfers, message, exchange, false)
    transfers.count(requester.transfers, message, request)
    note_answer(requester, message, request, is_last, is_of_request)
    -- nothing was asked for that did not come, unless the next block is
    exchange.without_answer = nil
    if is_last then
        exchanges.respond(exchange, message)
    end
    if is_last and not begins then
        -- a body that was refused midway begins anew
        lists.remove(requester.transfers, exchange)
        finish(exchange, "complete")
    end
end

-- What a response is whose request cannot be told: it brings data all the same where it answers one of several, or where nothing that its receiver asked
-- is in the capture, so that its request was before, or goes another way.
local function place_unmatched(requester, message)
    local is_one_of_several = message.token == "" and #requester.anonymous > 0
    local is_of_before = next(requester.polled) == nil and not requester.registered[message.token]
    message.is_data = (is_one_of_several or is_of_before) and message.payload > 0 and coap.is_success(message)
end

-- A response, piggybacked on the ACK of what was `asked`, or separate, or a notification.
local function place_response(message, peer, asked)
    local requester = sender_of(peer)
    local request = find(requester, message, asked) or not asked and registered_before(requester, message)
    if not request and asked then
        exchanges.join(asked.exchange, message)
        return "response"
    elseif not request then
        place_unmatched(requester, message)
        return "response"
    end
    if is_notified(request, message, asked) then
        return place_notification(requester, message, request)
    end
    local exchange = request.exchange
    exchanges.join(exchange, message)
    add_data(exchange, message, message.payload > 0 and coap.is_success(message))
    if not is_registered(request) then
        answered(requester, message, request)
    end
    message.expects_ack = message.kind == "CON" and message.is_data
    message.gives_ack = message.kind == "ACK"
    return "response"
end

-- An empty ACK (§4.2): of a request it tells that the response will be separate; of a response or notification that it arrived.
local function place_empty_ack(message, sent)
    exchanges.join(sent.exchange, message)
    if sent.role ~= "response" then
        exchanges.acknowledge(sent.exchange, message)
    end
    if sent.role == "notification" then
        finish(sent.exchange, "complete")
    end
    message.gives_ack = true
end

local function place_reset(message, sent, from, peer)
    exchanges.join(sent.exchange, message)
    if sent.role == "ping" then
        exchanges.respond(sent.exchange, message)
        finish(sent.exchange, "complete")
    elseif sent.role == "notification" then
        finish(sent.exchange, "reset")
        cancel(sender_of(from), sent.exchange.registration)
    else
        finish(sent.exchange, "reset")
        remove(sender_of(sent.role == "response" and from or peer), sent.exchange)
    end
end

-- ACK and RST carry the ID of the message that they answer (§4.2, §4.3).
local function place_answer(message, from, peer)
    local sender = sender_of(peer)
    local sent = sender.ids[message.id]
    if not sent or not is_alive(sent, message.time_ns) then
        place_unmatched(sender, message)
        sender.ids[message.id] = message.is_data and { time_ns = message.time_ns, is_con = true, is_acknowledged = true } or sent
        return
    end
    local was_acknowledged = sent.is_acknowledged
    sent.is_acknowledged = true
    if not sent.exchange then
        message.is_retransmission = was_acknowledged
    elseif was_acknowledged then
        exchanges.join_again(sent.exchange, message)
    elseif message.kind == "RST" then
        place_reset(message, sent, from, peer)
    elseif (coap.code_of(message) or 0) == 0 then
        place_empty_ack(message, sent)
    else
        place_response(message, peer, sent)
    end
end

-- A message ID seen within its lifetime: the message was sent again (§4.5).
local function is_repeated(message, from)
    local sent = sender_of(from).ids[message.id]
    if not sent or not is_alive(sent, message.time_ns) or sent.code ~= coap.code_of(message) then
        return false
    end
    message.is_retransmission = true
    if sent.exchange then
        exchanges.join_again(sent.exchange, message)
    end
    message.wait_ns = message.time_ns - (sent.last_ns or sent.time_ns)
    sent.last_ns, sent.turn = message.time_ns, (sent.turn or 1) + 1
    message.turn = sent.turn
    message.since_first_ns = message.time_ns - sent.time_ns
    message.was_acknowledged = sent.is_acknowledged
    return true
end

-- Nothing can join the exchange of this message any more, unless it is a registration or goes on with a later message.
local function let_go(sender, sent)
    local exchange = sent.exchange
    if sent.role == "request" and exchange.without_answer and exchange.kind ~= "observe" and exchange.asked_ns == sent.time_ns then
        finish(exchange, exchange.without_answer)
        remove(sender, exchange)
    elseif sent.role == "notification" or sent.role == "ping" then
        finish(exchange, (sent.is_con or sent.role == "ping") and "unanswered" or "complete")
    end
end

local function place_new(message, from, peer)
    local code = coap.code_of(message)
    if coap.is_request(code) then
        return place_request(message, from)
    elseif code == 0 then
        exchanges.open("ping", message)
        return "ping"
    end
    -- signals of reliable transports answer no request (RFC 8323 §5)
    return coap.class_of(message) ~= SIGNAL and place_response(message, peer, nil) or nil
end

-- A Pong has the token of its Ping (RFC 8323 §5.4).
local function place_pong(message, peer)
    local pings = sender_of(peer).pings
    for at, ping in ipairs(pings) do
        if ping.token == message.token then
            exchanges.join(ping, message)
            exchanges.respond(ping, message)
            finish(ping, "complete")
            table.remove(pings, at)
            return
        end
    end
end

-- Over TCP and WebSockets nothing is acknowledged or sent again (RFC 8323 §3.3).
local function place_reliable(message, from, peer)
    if message.kind == "Request" or message.kind == "Response" then
        place_new(message, from, peer)
    elseif message.kind == "Ping" then
        local pings, ping = sender_of(from).pings, exchanges.open("ping", message)
        ping.without_answer = "unanswered"
        pings[#pings + 1] = ping
    elseif message.kind == "Pong" then
        place_pong(message, peer)
    end
end

function pairing.place(message, from, peer)
    if message.is_over_tcp then
        return place_reliable(message, from, peer)
    elseif message.kind == "ACK" or message.kind == "RST" then
        return place_answer(message, from, peer)
    elseif is_repeated(message, from) then
        return
    end
    local role = place_new(message, from, peer)
    local sender = sender_of(from)
    local old = sender.ids[message.id]
    sender.ids[message.id] = {
        time_ns = message.time_ns, exchange = message.exchange, code = coap.code_of(message), role = role,
        is_con = message.kind == "CON",
    }
    if old then
        let_go(sender, old)
    end
end

return pairing
