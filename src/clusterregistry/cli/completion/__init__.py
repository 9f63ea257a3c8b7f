"""``completion bash|zsh|fish``: scripts that have a shell complete the commands, flags and values of a program.

A program is described once (``model``), from the options and commands as they are declared; each shell has a module
that writes the description in its language. This package must not know what any command does.
"""
