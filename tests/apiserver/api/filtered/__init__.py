"""Lists and watches of those who may see some objects only: one server for each file, rights that tests change."""
