-- Wireshark 4.4 and newer run Lua 5.4, which knows whole numbers from others, and NSTime takes whole ones only. Run by `make lint-lua`, since the
-- Wireshark that tests run with may be an older one: here a stand-in for NSTime is as strict.

local set = {}
NSTime = {
    new = function()
        return setmetatable({}, {
            __newindex = function(_, name, value)
                assert(math.type(value) == "integer", name .. " is no whole number")
                set[name] = value
            end,
        })
    end,
}

local show = require("pcapstat.show")
local branch = { add = function() end }
local expected = {
    { 1500000000.0, 1, 500000000 },
    { 1500000000, 1, 500000000 },
    { 999999999.0, 0, 999999999 },
    { -250000000.0, 0, -250000000 },
    { -3000000001.0, -3, -1 },
    { 0, 0, 0 },
}
for _, case in ipairs(expected) do
    show.add_time(branch, {}, case[1])
    assert(set.secs == case[2] and set.nsecs == case[3], case[1] .. " ns: " .. set.secs .. " s, " .. set.nsecs .. " ns")
end
