-- What the dissectors do alike to show their fields.

local show = {}

-- The fields of a table by name, as a protocol takes them.
function show.list(fields)
    local all = {}
    for _, field in pairs(fields) do
        all[#all + 1] = field
    end
    return all
end

-- Wireshark copies a time that is added: one object does for all.
local shown_time = NSTime.new(0, 0)

-- Nanoseconds as Wireshark's time; both parts have the sign. Since Lua 5.4 it takes whole numbers only, which math.floor returns.
local function nstime(time_ns)
    local sign = time_ns < 0 and -1 or 1
    local seconds = math.floor(time_ns * sign / 1e9)
    shown_time.secs, shown_time.nsecs = sign * seconds, sign * math.floor(time_ns * sign - seconds * 1e9)
    return shown_time
end

-- Adds a field, where there is a value for it.
function show.add(branch, field, value)
    if value ~= nil then
        branch:add(field, value)
    end
end

-- Adds a time, where there is one.
function show.add_time(branch, field, time_ns)
    if time_ns then
        branch:add(field, nstime(time_ns))
    end
end

return show
