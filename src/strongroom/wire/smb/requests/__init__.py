"""Bodies of the messages that concern a tree's files: what is asked, and how it is answered."""
