"""Facts, past tense: what the log holds. Imports values alone."""
