-- pcapstat: what each session has come to, frame by frame: Time1, Time2, ΔTime, goodput, throughput and overhead so far, as numbers that the I/O graph
-- can draw; and in Wireshark the table of all sessions under Tools > pcapstat. The same figures as `pcapstat summarize`:
--   tshark -r FILE -X lua_script:pcapstat_session.lua -T fields -e frame.number -e pcapstat_session.goodput

local version = require("pcapstat.version")
if not version.is_enough("pcapstat_session.lua") then
    return
end

local layers = require("pcapstat.layers")
local messages = require("pcapstat.messages")
local sessions = require("pcapstat.sessions")
local show = require("pcapstat.show")
local stage = require("pcapstat.stage")
local talks = require("pcapstat.talks")

local session_proto = Proto("pcapstat_session", "pcapstat: session so far")

local PREFIX = "pcapstat_session."

local function text_field(name, label, about)
    return ProtoField.string(PREFIX .. name, label, base.UNICODE, about)
end

local function time_field(name, label, about)
    return ProtoField.relative_time(PREFIX .. name, label, about)
end

local function bytes_field(name, label, about)
    return ProtoField.uint64(PREFIX .. name, label, base.DEC, nil, 0, about)
end

local function rate_field(name, label, about)
    return ProtoField.double(PREFIX .. name, label, about)
end

local shown = {
    client = text_field("client", "Client", "Address and port"),
    server = text_field("server", "Server", "Address and port"),
    receiver = text_field("receiver", "Receiver of the data", "The side that more data messages reach"),
    time1 = time_field("time1", "Time1", "When the receiver opened the session, since the capture's first frame"),
    time1_by = text_field("time1_by", "Time1 by", "application, security (first handshake message) or transport (first packet)"),
    time2 = time_field("time2", "Time2", "When the last data message arrived or was acknowledged, since the capture's first frame"),
    time2_by = text_field("time2_by", "Time2 by", "acknowledgement, where one is due; else arrival"),
    delta_time = time_field("delta_time", "ΔTime", "Time2 - Time1"),
    data_messages = ProtoField.uint32(PREFIX .. "data_messages", "Data messages", base.DEC, nil, 0, "Delivered, each once"),
    data_bytes = bytes_field("data_bytes", "Data", "Application payload delivered, each once"),
    goodput = rate_field("goodput", "Goodput in bytes/s", "Data / ΔTime"),
    throughput = rate_field("throughput", "Throughput in bytes/s", "Bytes of the data messages at the chosen layer / ΔTime"),
    session_bytes = bytes_field("session_bytes", "All bytes", "Both directions, at the chosen layer"),
    overhead_bytes = bytes_field("overhead_bytes", "Overhead", "All bytes less the data"),
    overhead_ratio = rate_field("overhead_ratio", "Overhead ratio", "Overhead / all bytes"),
}

local all = show.list(shown)
session_proto.fields = all

session_proto.prefs.layer = Pref.enum("Count bytes at", 1, "Layer at which bytes are counted (pcapstat --layer)", layers.CHOICES, false)
session_proto.prefs.time1 = Pref.enum("Time1 by", 1, "What opens a session (pcapstat --time1)", {
    { 1, "the first of these that the capture shows", 1 },
    { 2, "application: the receiver's first request or CONNECT", 2 },
    { 3, "security: the first handshake message", 3 },
    { 4, "transport: the first packet", 4 },
}, false)

talks.prepare()

function session_proto.init()
    sessions.init(session_proto.prefs.layer, session_proto.prefs.time1)
end

local add, add_time = show.add, show.add_time

local function add_figures(root, figures)
    add(root, shown.receiver, figures.receiver)
    add_time(root, shown.time1, figures.time1_ns)
    add(root, shown.time1_by, figures.time1)
    add_time(root, shown.time2, figures.time2_ns)
    add(root, shown.time2_by, figures.time2)
    add_time(root, shown.delta_time, figures.delta_ns)
    add(root, shown.data_messages, figures.data_messages)
    add(root, shown.data_bytes, UInt64(figures.data_bytes))
    add(root, shown.goodput, figures.goodput)
    add(root, shown.throughput, figures.throughput)
    add(root, shown.session_bytes, UInt64(figures.session_bytes))
    add(root, shown.overhead_bytes, UInt64(math.max(0, figures.overhead_bytes)))
    add(root, shown.overhead_ratio, figures.overhead_ratio)
end

local function dissect(tree, packet, is_new)
    local figures = sessions.of(packet, is_new)
    if not figures then
        return
    end
    local root = tree:add(session_proto)
    root:set_generated()
    add(root, shown.client, packet.stream.client_name)
    add(root, shown.server, packet.stream.server_name)
    add_figures(root, figures)
end

stage.add(all, dissect)

if not gui_enabled() then
    return
end

-- The table of sessions under Tools.

local HEADINGS = {
    "stream", "protocol", "client", "server", "receiver", "Time1 s", "Time2 s", "ΔTime s", "data", "bytes", "goodput", "throughput", "all bytes",
    "overhead bytes", "overhead %", "frames",
}
local NOT_AVAILABLE = "n/a"
-- Columns of the window: stream, protocol, client, ΔTime, data messages and bytes, goodput, throughput, overhead in percent.
local IN_WINDOW = { 1, 2, 3, 8, 9, 10, 11, 12, 15 }

local function seconds(time_ns)
    return time_ns and ("%.9f"):format(time_ns / 1e9) or NOT_AVAILABLE
end

local function decimal(value, digits)
    return value and ("%." .. digits .. "f"):format(value) or NOT_AVAILABLE
end

local function row(session)
    local stream, figures = session.stream, sessions.figures(session)
    return {
        (stream.is_tcp and "tcp " or "udp ") .. stream.number, session.protocol or "", stream.client_name, stream.server_name, figures.receiver,
        seconds(figures.time1_ns), seconds(figures.time2_ns), seconds(figures.delta_ns), tostring(figures.data_messages),
        tostring(figures.data_bytes), decimal(figures.goodput, 3), decimal(figures.throughput, 3), tostring(figures.session_bytes),
        tostring(figures.overhead_bytes), decimal(figures.overhead_ratio and figures.overhead_ratio * 100, 2),
        session.frame_first .. "-" .. session.frame_last,
    }
end

-- Rows of the sessions that have a frame which passes the filter.
local function rows(passing)
    local found = { HEADINGS }
    for _, session in ipairs(sessions.all()) do
        if passing[session] then
            found[#found + 1] = row(session)
        end
    end
    return found
end

local function width(text)
    -- bytes that go on with a character of UTF-8 take no room
    return #text:gsub("[\128-\191]", "")
end

local function aligned(table_rows)
    local widths, lines = {}, {}
    for _, cells in ipairs(table_rows) do
        for at, cell in ipairs(cells) do
            widths[at] = math.max(widths[at] or 0, width(cell))
        end
    end
    for _, cells in ipairs(table_rows) do
        local padded = {}
        for at, cell in ipairs(cells) do
            padded[at] = cell .. (" "):rep(widths[at] - width(cell))
        end
        lines[#lines + 1] = table.concat(padded, "  ")
    end
    return table.concat(lines, "\n")
end

local function as_csv(table_rows)
    local lines = {}
    for _, cells in ipairs(table_rows) do
        lines[#lines + 1] = '"' .. table.concat(cells, '","') .. '"'
    end
    return table.concat(lines, "\n")
end

-- What the window has room for; the clipboard gets all columns.
local function narrow(table_rows)
    local narrowed = {}
    for at, cells in ipairs(table_rows) do
        narrowed[at] = {}
        for column, wanted in ipairs(IN_WINDOW) do
            narrowed[at][column] = cells[wanted]
        end
    end
    return narrowed
end

-- Opens the window. Its listener sees the frames that pass the display filter. Wireshark gives a listener its filter once, and none may be replaced
-- while it is called: so behind another display filter the window asks for its button.
local function show_sessions()
    local window = TextWindow.new("pcapstat: sessions")
    local filter, passing, listener

    local function write()
        local head = filter ~= "" and "Sessions with frames that pass: " .. filter or "All sessions"
        local hint = get_filter() ~= filter and "\nThe display filter has changed: press Refresh." or ""
        window:set(head .. hint .. "\n\n" .. aligned(narrow(rows(passing))) .. "\n")
    end

    local function listen()
        if listener then
            listener:remove()
        end
        filter, passing = get_filter(), {}
        listener = Listener.new("frame", filter ~= "" and filter or nil)
        function listener.packet(pinfo)
            local packet = messages.found(pinfo.number)
            local session = packet and packet.stream.session
            if session then
                passing[session] = true
            end
        end
        function listener.reset()
            passing = {}
        end
        listener.draw = write
        retap_packets()
    end

    window:add_button("Refresh", listen)
    window:add_button("Copy as CSV", function() copy_to_clipboard(as_csv(rows(passing))) end)
    window:set_atclose(function() listener:remove() end)
    listen()
end

register_menu("pcapstat/Sessions", show_sessions, MENU_TOOLS_UNSORTED)
