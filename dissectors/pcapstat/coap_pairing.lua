-- Which CoAP messages belong together: requests with their responses (RFC 7252 §5.3), messages with their acknowledgements (§4), notifications with
-- their registration (RFC 7641), blocks with their transfer (RFC 7959).

local coap = require("pcapstat.coap")
local exchanges = require("pcapstat.exchanges")

local pairing = {}

-- RFC 7252 §4.8.2, with the default transmission parameters of §4.8; RFC 7641 §3.4.
local EXCHANGE_LIFETIME_NS, NON_LIFETIME_NS, FRESH_AFTER_NS, HALF_OF_OBSERVE = 247e9, 145e9, 128e9, 2 ^ 23
local PING, CONTINUE, SUCCESS = 226, 95, 2
local METHODS = { "GET", "POST", "PUT", "DELETE", "FETCH", "PATCH", "iPATCH" }

local function code_of(message)
    return message.inner_code or message.code
end

local function subject_of(message)
    return message.resource or ""
end

local function is_alive(sent, now_ns)
    return now_ns - sent.time_ns < (sent.is_con and EXCHANGE_LIFETIME_NS or NON_LIFETIME_NS)
end

local function sender_of(side)
    if not side.coap then
        side.coap = { ids = {}, requests = {}, anonymous = {}, transfers = {}, polled = {} }
    end
    return side.coap
end

local function remove_from(list, exchange)
    for at = #list, 1, -1 do
        if list[at].exchange == exchange then
            table.remove(list, at)
        end
    end
end

local function remove(sender, exchange)
    for token, request in pairs(sender.requests) do
        if request.exchange == exchange then
            sender.requests[token] = nil
        end
    end
    remove_from(sender.anonymous, exchange)
    remove_from(sender.transfers, exchange)
end

local function finish(exchange, outcome)
    exchange.is_waiting = nil
    exchanges.finish(exchange, outcome)
end

local function is_success(message)
    return math.floor((code_of(message) or 0) / 32) == SUCCESS
end

local function add_data(exchange, message, is_data)
    if is_data then
        message.is_data = true
        exchange.payload = exchange.payload + message.payload
    end
end

local function kind_of(message)
    return message.observe == 0 and "observe" or METHODS[code_of(message)] or "request"
end

-- The block that a message carries on: offsets of its start and end, whether more follow.
local function block(message, is_block1)
    local option = is_block1 and message.block1 or not is_block1 and message.block2
    if not option then
        return nil
    end
    local size = 2 ^ (4 + math.min(option.szx, 6))
    return option.number * size, (option.number + 1) * size, option.more
end

-- Ends the registration of an exchange (RFC 7641 §3.6).
local function cancel(sender, registration)
    if registration then
        finish(registration, "cancelled")
        remove(sender, registration)
    end
end

-- The transfer that a request for a later block carries on (RFC 7959 §2.4, §2.5).
local function continued(sender, message)
    local offset1 = block(message, true)
    local is_block1 = offset1 ~= nil and offset1 > 0
    local offset = is_block1 and offset1 or block(message, false)
    if not offset or offset == 0 then
        return nil
    end
    local by_next
    for _, transfer in ipairs(sender.transfers) do
        local fits = transfer.subject == subject_of(message) and transfer.is_block1 == is_block1
            and (not is_block1 or transfer.tag == (message.body_tag or ""))
        if fits and transfer.token == message.token and transfer.next >= offset then
            return transfer.exchange
        end
        by_next = by_next or fits and transfer.next == offset and transfer.exchange or nil
    end
    return by_next
end

-- The registration that a request with the same token and resource renews (RFC 7641 §3.3.1).
local function registered_again(sender, message)
    local request = message.observe == 0 and sender.requests[message.token]
    if request and request.is_observe and request.is_answered and request.subject == subject_of(message) then
        return request.exchange
    end
    return nil
end

-- Keeps a transfer's place. Returns whether more blocks are to come.
local function follow_blocks(sender, message, exchange, is_request)
    local _, next_offset, more = block(message, is_request)
    if not next_offset then
        return false
    end
    remove_from(sender.transfers, exchange)
    if more then
        sender.transfers[#sender.transfers + 1] = {
            exchange = exchange, subject = subject_of(message), tag = message.body_tag or "", token = message.token, next = next_offset,
            is_block1 = is_request,
        }
    end
    return more
end

local function begin(sender, message)
    local exchange = exchanges.open(kind_of(message), message)
    exchange.resource, exchange.is_waiting = message.resource, true
    local subject = subject_of(message)
    if sender.polled[subject] then
        exchange.interval_ns = message.time_ns - sender.polled[subject]
        message.interval_ns = exchange.interval_ns
    end
    sender.polled[subject] = message.time_ns
    return exchange
end

local function keep_anonymous(sender, request)
    local kept = {}
    for _, open in ipairs(sender.anonymous) do
        if open.exchange ~= request.exchange and (not open.is_answered or open.is_observe) then
            kept[#kept + 1] = open
        end
    end
    kept[#kept + 1] = request
    sender.anonymous = kept
end

-- Notes a request as open. One with the same token before it cannot be told apart from it any more (RFC 7252 §5.3.1).
local function open(sender, message, request)
    if message.token == "" then
        return keep_anonymous(sender, request)
    end
    local old = sender.requests[message.token]
    sender.requests[message.token] = request
    if not old or old.exchange == request.exchange then
        return
    elseif old.is_observe and message.observe == 1 then
        finish(old.exchange, "cancelled")
    elseif not old.is_answered then
        finish(old.exchange, "superseded")
    end
end

local function place_request(message, from)
    local sender = sender_of(from)
    local exchange = continued(sender, message) or registered_again(sender, message)
    if exchange then
        exchanges.join(exchange, message)
    else
        exchange = begin(sender, message)
    end
    local before = sender.requests[message.token]
    local freshest = before and before.exchange == exchange and before.freshest or nil
    open(sender, message, {
        exchange = exchange, time_ns = message.time_ns, subject = subject_of(message), is_con = message.kind == "CON",
        is_observe = message.observe == 0, is_answered = freshest ~= nil, freshest = freshest,
    })
    follow_blocks(sender, message, exchange, true)
    add_data(exchange, message, message.payload > 0)
    message.expects_ack = message.is_data and message.kind == "CON"
    return "request"
end

-- RFC 7641 §3.4.
local function is_fresh(freshest, value, now_ns)
    if not freshest then
        return true
    end
    local before = freshest.value
    return now_ns > freshest.time_ns + FRESH_AFTER_NS or (before < value and value - before < HALF_OF_OBSERVE)
        or (before > value and before - value > HALF_OF_OBSERVE)
end

-- The open request that a response answers.
local function find(requester, message, piggybacked)
    if message.token ~= "" then
        return requester.requests[message.token]
    end
    local only, count = nil, 0
    for _, request in ipairs(requester.anonymous) do
        if piggybacked and request.exchange == piggybacked then
            return request
        elseif not piggybacked and (not request.is_answered or request.is_observe) then
            only, count = request, count + 1
        end
    end
    if count > 1 then
        for _, request in ipairs(requester.anonymous) do
            if not request.is_answered or request.is_observe then
                finish(request.exchange, "ambiguous")
            end
        end
    end
    return count == 1 and only or nil
end

-- A further response to a registration (RFC 7641 §3.2).
local function place_notification(requester, message, request)
    local exchange = exchanges.open("notification", message)
    exchange.parent = request.exchange
    local fresh = message.observe ~= nil and is_fresh(request.freshest, message.observe, message.time_ns)
    if fresh and request.freshest then
        exchange.interval_ns = message.time_ns - request.freshest.time_ns
        message.interval_ns = exchange.interval_ns
        message.observe_gap = (message.observe - request.freshest.value) % 2 ^ 24 - 1
    end
    message.is_stale = not fresh
    if fresh then
        request.freshest = { value = message.observe, time_ns = message.time_ns }
    end
    exchange.result = message.variant
    add_data(exchange, message, message.payload > 0 and is_success(message) and fresh)
    if message.kind ~= "CON" then
        finish(exchange, "complete")
    end
    if message.observe == nil then
        cancel(requester, request.exchange)
    end
    message.expects_ack = message.kind == "CON" and message.is_data
    return "notification"
end

-- Counts the blocks of a transfer (RFC 7959).
local function count_blocks(requester, message, request)
    local exchange = request.exchange
    for _, transfer in ipairs(requester.transfers) do
        if transfer.exchange == exchange then
            transfer.subject, transfer.token = request.subject, message.token
            exchange.parts = (exchange.parts or 0) + 1
            if not exchange.kind:find("block-wise", 1, true) and exchange.kind ~= "observe" and exchange.kind ~= "request" then
                exchange.kind = exchange.kind .. " block-wise"
            end
            return
        end
    end
    if exchange.parts then
        exchange.parts = exchange.parts + 1
    end
end

local function remove_one(requester, message, exchange)
    if message.token == "" then
        remove_from(requester.anonymous, exchange)
    else
        requester.requests[message.token] = nil
    end
end

-- Notes the first response to a request; one without more to come is let go.
local function answered(requester, message, request, is_last)
    count_blocks(requester, message, request)
    request.is_answered = request.is_answered or is_last
    request.exchange.is_waiting = not is_last or nil
    request.freshest = request.is_observe and message.observe and { value = message.observe, time_ns = message.time_ns } or nil
    request.is_observe = request.is_observe and (message.observe ~= nil or not is_last)
    if is_last and not request.is_observe and request.is_con then
        remove_one(requester, message, request.exchange)
    end
end

-- A response, piggybacked on the ACK of the request in `piggybacked`, or separate, or a notification.
local function place_response(message, peer, piggybacked)
    local requester = sender_of(peer)
    local request = find(requester, message, piggybacked)
    if not request then
        if piggybacked then
            exchanges.join(piggybacked, message)
        end
        return "response"
    end
    if request.is_answered and request.is_observe then
        return place_notification(requester, message, request)
    end
    local exchange = request.exchange
    message.is_separate = message.kind ~= "ACK" and exchange.frame_ack ~= nil
    exchanges.join(exchange, message)
    if request.is_con then
        exchanges.acknowledge(exchange, message)
    end
    local is_last = not follow_blocks(requester, message, exchange, false) and code_of(message) ~= CONTINUE
    local was_observe = request.is_observe
    answered(requester, message, request, is_last)
    if is_last then
        exchanges.respond(exchange, message)
        if not (was_observe and message.observe) then
            finish(exchange, "complete")
        end
    end
    exchange.result = message.variant
    add_data(exchange, message, message.payload > 0 and is_success(message))
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
        cancel(sender_of(from), sent.exchange.parent)
    else
        finish(sent.exchange, "reset")
        remove(sender_of(peer), sent.exchange)
    end
end

-- ACK and RST carry the ID of the message that they answer (§4.2, §4.3).
local function place_answer(message, from, peer)
    local sent = sender_of(peer).ids[message.id]
    if not sent or not is_alive(sent, message.time_ns) then
        return
    end
    local was_acknowledged = sent.is_acknowledged
    sent.is_acknowledged = true
    if not sent.exchange then
        return
    elseif was_acknowledged then
        exchanges.join_again(sent.exchange, message)
    elseif message.kind == "RST" then
        place_reset(message, sent, from, peer)
    elseif (code_of(message) or 0) == 0 then
        place_empty_ack(message, sent)
    else
        place_response(message, peer, sent.exchange)
    end
end

-- A message ID seen within its lifetime: the message was sent again (§4.5).
local function is_repeated(message, from)
    local sent = sender_of(from).ids[message.id]
    if not sent or not is_alive(sent, message.time_ns) or sent.code ~= code_of(message) then
        return false
    end
    message.is_retransmission, message.sent_before = true, sent
    if sent.exchange then
        exchanges.join_again(sent.exchange, message)
    end
    message.wait_ns = message.time_ns - sent.times[#sent.times]
    sent.times[#sent.times + 1] = message.time_ns
    message.turn = #sent.times
    message.since_first_ns = message.time_ns - sent.times[1]
    message.was_acknowledged = sent.is_acknowledged
    return true
end

-- Nothing can join the exchange of this message any more, unless it is a registration.
local function let_go(sender, sent)
    if sent.role == "request" and sent.exchange and sent.exchange.is_waiting then
        finish(sent.exchange, "unanswered")
        remove(sender, sent.exchange)
    elseif (sent.role == "notification" or sent.role == "ping") and sent.exchange then
        finish(sent.exchange, (sent.is_con or sent.role == "ping") and "unanswered" or "complete")
    end
end

local function place_new(message, from, peer)
    local code = code_of(message)
    if coap.is_request(code) then
        return place_request(message, from)
    elseif code == 0 or code == PING then
        exchanges.open("ping", message)
        return "ping"
    end
    return place_response(message, peer, nil)
end

function pairing.place(message, from, peer)
    if message.kind == "ACK" or message.kind == "RST" then
        return place_answer(message, from, peer)
    elseif message.kind ~= "CON" and message.kind ~= "NON" then
        if message.kind == "Request" or message.kind == "Response" or message.kind == "Ping" or message.kind == "Pong" then
            place_new(message, from, peer)
        end
        return
    elseif is_repeated(message, from) then
        return
    end
    local role = place_new(message, from, peer)
    local sender = sender_of(from)
    local old = sender.ids[message.id]
    sender.ids[message.id] = {
        time_ns = message.time_ns, times = { message.time_ns }, exchange = message.exchange, code = code_of(message), role = role,
        is_con = message.kind == "CON",
    }
    if old then
        let_go(sender, old)
    end
end

return pairing
