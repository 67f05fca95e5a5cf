"""The command line: one click command a file, imported when it is called."""
