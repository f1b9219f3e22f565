"""Answers as documents, in the shape of Slurm's data_parser v0.0.41: for --json and --yaml."""
