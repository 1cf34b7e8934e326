-- Block-wise transfers under way (RFC 7959), in the list of those that one side asks for or sends in requests.

local coap = require("pcapstat.coap")
local lists = require("pcapstat.lists")

local transfers = {}

-- 2.31 (RFC 7959 §2.9.1).
local CONTINUE = 95

-- The block that a message carries on: offsets of its start and end, whether more follow. One of SZX 7 is as long as its payload (RFC 8323 §6).
local function block(message, is_block1)
    local option = is_block1 and message.block1 or not is_block1 and message.block2
    if not option then
        return nil
    end
    local size = 2 ^ (4 + math.min(option.szx, 6))
    local length = option.szx == 7 and math.max(message.payload, size) or size
    return option.number * size, option.number * size + length, option.more
end

-- Whether a message asks for a block behind the first, or brings one.
function transfers.is_later_block(message)
    return message.block2 ~= nil and message.block2.number > 0
end

-- The transfer that a request for a later block carries on (RFC 7959 §2.4, §2.5).
function transfers.continued(list, message)
    local offset1 = block(message, true)
    local is_block1 = offset1 ~= nil and offset1 > 0
    local offset = is_block1 and offset1 or block(message, false)
    if not offset or offset == 0 then
        return nil
    end
    local by_next
    for _, transfer in ipairs(list) do
        local fits = transfer.subject == coap.subject_of(message) and transfer.is_block1 == is_block1
            and (not is_block1 or transfer.tag == (message.body_tag or ""))
        if fits and transfer.token == message.token and transfer.next >= offset then
            return transfer
        end
        by_next = by_next or fits and transfer.next == offset and transfer or nil
    end
    return by_next
end

-- Keeps a transfer's place. Returns whether more blocks are to come.
function transfers.follow(list, message, exchange, is_request)
    local _, next_offset, more = block(message, is_request)
    if not next_offset then
        return false
    end
    lists.remove(list, exchange)
    if more then
        list[#list + 1] = {
            exchange = exchange, subject = coap.subject_of(message), tag = message.body_tag or "", token = message.token, next = next_offset,
            is_block1 = is_request,
        }
    end
    return more
end

-- Whether a response answers only one block of the request's body: with 2.31, or because the server keeps no state between blocks and answers each
-- as if it were all (RFC 7959 §2.3, Figure 8).
function transfers.is_step(list, message, exchange)
    if coap.code_of(message) == CONTINUE then
        return true
    elseif not message.block1 or not coap.is_success(message) then
        return false
    end
    return lists.first(list, function(transfer) return transfer.is_block1 and transfer.exchange == exchange end) ~= nil
end

-- Counts the blocks of a transfer (RFC 7959).
function transfers.count(list, message, request)
    local exchange = request.exchange
    for _, transfer in ipairs(list) do
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

return transfers
