"""``completion bash|zsh|fish``: scripts by which a shell completes the commands, flags and values of a program.

``model`` describes a program once, from its declared options and commands; each shell has a module that writes the
description in its language. This package must not know what any command does.
"""
