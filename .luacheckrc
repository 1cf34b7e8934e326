-- Wireshark's Lua API as these dissectors use it; no globals of ours.
std = "lua52"
max_line_length = 160
read_globals = {
    "Dissector", "DissectorTable", "Field", "Listener", "NSTime", "Pref", "Proto", "ProtoExpert", "ProtoField", "TextWindow",
    "all_field_infos", "base", "expert", "frametype", "ftypes", "UInt64", "get_version", "gui_enabled", "register_menu", "register_postdissector",
    "MENU_TOOLS_UNSORTED", "get_filter", "retap_packets", "copy_to_clipboard", "set_filter",
}
files["dissectors/*.lua"] = { ignore = { "212/tvb", "122/.*prefs" } }
