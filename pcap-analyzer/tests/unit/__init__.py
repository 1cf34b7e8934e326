"""Tests, see CONTRIBUTING."""
