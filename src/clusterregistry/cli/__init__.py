"""The frame of every program: options, help, completion, logs, exit statuses. It must not know any server."""
