"""The command line: one file per command, `main` parses and calls."""
