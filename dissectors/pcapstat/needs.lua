-- Whether anybody will see what the dissectors find. tshark that only lists packets shows none of their fields, so they do no work for it:
-- that keeps loading them cheap. Wireshark, and the first of tshark's two passes (-2), may show later what is found now.

local needs = {}

-- Whether packets are being listed: the columns are there to be filled. In a pass that shows nothing yet they are not.
local function is_listing(pinfo)
    return tostring(pinfo.cols.info) ~= "(nocol)" and tostring(pinfo.cols.info) ~= "(nil)"
end

local function is_any_referenced(tree, fields)
    for _, field in pairs(fields) do
        if tree:referenced(field) then
            return true
        end
    end
    return false
end

-- A function that answers, for the frame at hand, whether the fields of one dissector are to be made. Asked once a pass: in tshark the
-- answer is the same for all frames of it.
function needs.of(fields)
    local before, answer = math.huge, true
    return function(pinfo, tree)
        if gui_enabled() then
            return true
        end
        if pinfo.number <= before then
            answer = not tree or is_any_referenced(tree, fields) or not is_listing(pinfo)
        end
        before = pinfo.number
        return answer
    end
end

return needs
