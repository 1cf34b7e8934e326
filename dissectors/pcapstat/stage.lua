-- One post-dissector for all dissectors that are loaded, since each one that Wireshark calls costs time in every frame: it reads a frame once for all of
-- them. It does nothing where nobody
-- will see what it finds: tshark that only lists packets shows none of the fields. Wireshark may show later what is found now, and so may the
-- first of tshark's two passes (-2 with -Y). Without a filter that first pass has no fields to read, and frames are read in the second.

local fields = require("pcapstat.fields")
local messages = require("pcapstat.messages")
local talks = require("pcapstat.talks")

local stage = {}

-- Kilobytes that Lua may add to what is in use before it looks for garbage, where little is in use, and frames until this is judged anew.
local SPARE_KB, FRAMES_BETWEEN = 65536, 256

local handlers, active = {}, {}
local before, looks = math.huge, 0
local proto

-- Whether packets are being listed: the columns are there to be filled. In a pass that shows nothing yet they are not.
local function is_listing(pinfo)
    return tostring(pinfo.cols.info) ~= "(info)"
end

local function is_any_referenced(tree, shown)
    for _, field in ipairs(shown) do
        if tree:referenced(field) then
            return true
        end
    end
    return false
end

-- Whether this look at the frames is the only one: tshark without -2 that writes details. The first of two passes writes none.
local function is_only_look(pinfo, tree)
    return not gui_enabled() and tree.visible and not pinfo.visited
end

-- Decides at the start of a pass who shows something in it, and whether what is found is kept: the answer is the same for all frames.
local function choose(pinfo, tree)
    active = {}
    messages.keep(not is_only_look(pinfo, tree))
    if fields.frame() == nil then
        return
    end
    local is_everybody = gui_enabled() or not is_listing(pinfo)
    for _, handler in ipairs(handlers) do
        if is_everybody or is_any_referenced(tree, handler.shown) then
            active[#active + 1] = handler
        end
    end
end

-- Lets Lua look through its memory seldom while that is small, since each look takes time, and at the latest when it has doubled.
local function pace_collector()
    collectgarbage("setpause", math.max(200, math.floor(100 + 100 * SPARE_KB / collectgarbage("count"))))
end

local function dissect(tvb, pinfo, tree)
    local number = pinfo.number
    if number <= before then
        choose(pinfo, tree)
    end
    before = number
    if #active == 0 then
        return
    end
    if number % FRAMES_BETWEEN == 0 then
        pace_collector()
    end
    local packet, is_new = talks.at(tvb, pinfo, number)
    if not packet then
        return
    end
    looks = looks + 1
    for at = 1, #active do
        active[at].dissect(tree, packet, is_new, looks)
    end
end

-- Adds a dissector: the fields that it shows, and the function that shows them in a tree. That gets the packet (`talks.at`), whether the frame was
-- seen for the first time, and the number of this look at a frame.
function stage.add(shown, dissector)
    handlers[#handlers + 1] = { shown = shown, dissect = dissector }
    if not proto then
        pace_collector()
        proto = Proto("pcapstat_stage", "pcapstat: reads frames for its dissectors")
        proto.dissector = dissect
        register_postdissector(proto)
    end
end

return stage
