"""The command line: arguments, wiring and exit codes; one module per command."""
