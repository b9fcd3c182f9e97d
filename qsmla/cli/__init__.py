"""The command line, `qsmla`."""
