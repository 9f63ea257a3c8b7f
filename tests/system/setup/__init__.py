"""The set-up itself: what `make` installs, what a release has, and the first minute of a newcomer."""
