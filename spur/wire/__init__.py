"""Requests, replies and rows as data, versioned; no sockets. Imports values alone."""
