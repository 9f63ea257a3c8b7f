"""Tests that tie the documents to the code: what they show is run, what they name exists, what exists is named.

The rules for an author:

* a ``sh`` block is run, word for word and in order, in one shell a document (``following`` says how);
* a ``text`` block right after it is what it prints; a line ``...`` stands for any text, and times, uids and the width
  of columns do not count;
* a ``sh fails`` block ends with an error that the reader is meant to see;
* commands that cannot be run in a test, such as those for root, are ``console`` blocks with a prompt.
"""
