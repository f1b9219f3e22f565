"""Columns of listings, one table a subject: letter, long name, header, value, JSON name, source."""
