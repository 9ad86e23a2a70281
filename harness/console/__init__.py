"""The base of the command line: options and their sources, settings files, plug-ins, terminal, and the end of the process."""
