"""Synthetic captures against the size model and the tool."""
