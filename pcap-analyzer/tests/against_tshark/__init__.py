"""The native engine against tshark."""
