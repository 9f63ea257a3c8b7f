"""Lists and watches of users who may see some objects only: one server for each file, rights that tests change."""
