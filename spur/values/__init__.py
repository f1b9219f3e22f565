"""Immutable vocabulary with its grammar; imports the standard library and msgspec."""
