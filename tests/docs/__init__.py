"""Tests that tie the documents to the code: what they show is run, what they name exists, what exists is named.

The rules for an author:

* a ``sh`` block is run, word for word and in order, in login shells that know nothing of other documents
  (``guide_reader`` says how): a document sets every variable that it uses, and before it runs ``clusterregistry`` it
  shows the line that finds the program in a checkout;
* a ``text`` block right after it is what it prints; a line ``...`` stands for any text, and times, uids and the width
  of columns do not count;
* a ``sh fails`` block ends with an error that the reader is meant to see;
* a ``sh stopped`` block is for a reader who has ended the server before it, as the text then says;
* commands that cannot be run in a test, such as those for root, are ``sh`` blocks too, after a line
  ``<!-- not run: REASON -->``. Other blocks have no commands in them.
"""
