"""What every program of the project has: options, help, completion, logs, exit statuses. Knows no server."""
