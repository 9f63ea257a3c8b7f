"""The core group, whose name is empty: one package a version, and nothing that stores or serves it."""

GROUP = ""
