-- The exchanges that messages belong to: requests with responses, notifications, QoS flows; as in the CLI's table exchanges. A message is placed
-- once; later passes show what became of its exchange.

local exchanges = {}

local number = 0

function exchanges.init()
    number = 0
end

-- Begins an exchange with a message. Many are kept: what few have gets its place when it comes.
function exchanges.open(kind, message)
    local exchange = {
        number = number,
        kind = kind,
        direction = message.side.direction,
        frame_first = message.frame,
        frame_last = message.frame,
        time_ns = message.time_ns,
        token = message.token,
        id = message.id,
        messages = 1,
        payload = 0,
    }
    number = number + 1
    message.exchange = exchange
    return exchange
end

-- Adds a message to an exchange.
function exchanges.join(exchange, message)
    message.exchange = exchange
    exchange.messages = exchange.messages + 1
    exchange.frame_last = message.frame
end

-- Adds a message that its sender sent before.
function exchanges.join_again(exchange, message)
    exchanges.join(exchange, message)
    exchanges.count_again(exchange, message)
end

-- The same of a message that the exchange has.
function exchanges.count_again(exchange, message)
    exchange.retransmissions = (exchange.retransmissions or 0) + 1
    message.is_retransmission = true
end

-- The acknowledgement came: the first one counts.
function exchanges.acknowledge(exchange, message)
    if not exchange.ack_rtt_ns then
        exchange.ack_rtt_ns, exchange.frame_ack = message.time_ns - exchange.time_ns, message.frame
    end
end

-- The response came: the first one counts.
function exchanges.respond(exchange, message)
    if not exchange.rtt_ns then
        exchange.rtt_ns, exchange.frame_response = message.time_ns - exchange.time_ns, message.frame
    end
end

-- Decides how it ended, the first time.
function exchanges.finish(exchange, outcome)
    exchange.outcome = exchange.outcome or outcome
end

-- How it ended; where the capture has been seen to its end, what is still open has no answer.
function exchanges.outcome(exchange, is_capture_over)
    if exchange.outcome or not is_capture_over then
        return exchange.outcome
    end
    return exchange.without_answer or "open"
end

return exchanges
