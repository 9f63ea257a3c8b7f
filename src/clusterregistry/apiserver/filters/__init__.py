"""One filter a file. A filter takes the next handler and returns a handler; ``serving.chain`` has the order."""
