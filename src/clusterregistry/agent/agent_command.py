"""``agent``: observes one cluster from inside, and writes its status."""
