"""spurctld: front, RPC, peers, snapshot process. The only room that touches consensus."""
