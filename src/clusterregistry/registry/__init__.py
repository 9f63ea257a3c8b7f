"""The cluster registry: the product on ``apiserver``. Its kinds, its secret lint and its commands."""
