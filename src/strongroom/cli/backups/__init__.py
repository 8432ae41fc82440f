"""Copies of data: the runs of `strongroom backup`, and of whole stores."""
