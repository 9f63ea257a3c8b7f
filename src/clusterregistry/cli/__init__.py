"""The commands: what a person types, reads, and gets as an exit status.

The only place that prints for people, configures logging, and ends the process. It must not hold logic that a server
needs: everything below it works without a terminal.
"""
