"""Lua fields through tshark, held to the command line's numbers."""
