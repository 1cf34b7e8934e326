-- Whether anybody will see what the dissectors find. tshark that only lists packets shows none of their fields, so they do no work for it:
-- that keeps loading them cheap. Wireshark may show later what is found now, and so may the first of tshark's two passes (-2 with -Y).
-- Without a filter that first pass has no fields to read, and frames are read in the second.

local fields = require("pcapstat.fields")

local needs = {}

-- Whether packets are being listed: the columns are there to be filled. In a pass that shows nothing yet they are not.
local function is_listing(pinfo)
    return tostring(pinfo.cols.info) ~= "(info)"
end

local function is_any_referenced(tree, shown)
    for _, field in pairs(shown) do
        if tree:referenced(field) then
            return true
        end
    end
    return false
end

-- A function that answers, for the frame at hand, whether the fields `shown` of one dissector are to be made. Asked once a pass: the answer
-- is the same for all frames of it.
function needs.of(shown)
    local before, answer = math.huge, true
    return function(pinfo, tree)
        if pinfo.number <= before then
            local has_fields = fields.frame() ~= nil
            answer = has_fields and (gui_enabled() or is_any_referenced(tree, shown) or not is_listing(pinfo))
        end
        before = pinfo.number
        return answer
    end
end

return needs
