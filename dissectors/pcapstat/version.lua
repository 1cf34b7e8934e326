-- Which Wireshark these dissectors need: 4.0 or newer. Loaded before anything that older versions do not have.

local version = {}

local OLDEST_MAJOR = 4

-- "4.0.17" → 4
local function major(text)
    return tonumber((text or ""):match("^(%d+)"))
end

-- Whether this Wireshark is new enough; where it is not, says so once for each file and the file loads nothing.
function version.is_enough(file)
    local told = get_version and get_version() or "none"
    local number = major(told)
    if number and number >= OLDEST_MAJOR then
        return true
    end
    print(("pcapstat: %s needs Wireshark or tshark %d.0 or newer, this is %s; it is not loaded"):format(file, OLDEST_MAJOR, told))
    return false
end

return version
