-- The parts of a message's bytes, and which of them count at each layer, as by `pcapstat --layer`.

local layers = {}

layers.PARTS = { "link", "padding", "ip", "transport", "security", "header", "option", "payload", "opaque" }
-- The layers as choices of a preference: number, words, value.
layers.CHOICES = {
    { 1, "frame: all bytes on the wire", 1 },
    { 2, "ip: from the IP header on", 2 },
    { 3, "transport: the UDP or TCP payload", 3 },
    { 4, "security: inside the (D)TLS records", 4 },
    { 5, "application: the protocol's own bytes", 5 },
}

-- The first part that each layer counts.
local FIRST_PART = { 1, 3, 5, 6, 6 }

-- A message's bytes at a layer.
function layers.bytes(message, layer)
    local sum = 0
    for at = FIRST_PART[layer], #layers.PARTS do
        sum = sum + message[layers.PARTS[at]]
    end
    return sum
end

return layers
