"""Data of earlier releases under the present code: each release has a directory with what it wrote."""
