"""Bodies of blobs: one module for each kind, and the interface that all kinds share (body.py).

Lives here: where the bytes of a blob are stored, and how they are read, adopted, shared, retired,
swept, copied and checked. Code outside of this package does not distinguish kinds; a test enforces
that.

| kind     | its bytes are stored in                                   | made by        | | --------
| --------------------------------------------------------- | -------------- | | `Empty`  | nothing
| received.py    | | `InRecord` | the blob's record: up to 512 bytes                      |
received.py    | | `Inline` | a hidden record beside it: up to 8 KiB                    |
received.py    | | `Stored` | one content                                               |
received.py    | | `Listed` | the contents of the blocks that an immutable list names   | listed.py
| | `Appended` | a hidden record for each block: its bytes, or a content | appended.py    | |
`Pages`  | a map of sparse content (store/core/extents)              | pages.py       |

A new kind is a module with a subclass of `Body`, its name in kinds.py, and a function that makes a
`NewBody`. Two rules allow a kind to change in place (blocks are appended, pages are written):
 1. Its stored form carries the stamp of its last change. Readers and sweeps compare stored forms,
    so two states of a body must never be equal.
 2. `Body.snapshot` returns the form that the head has from then on, for example one with a new
    generation. Parts of earlier generations then belong to the snapshot and are never written
    again. `Body.sweep_retired` drops the parts that no other live form refers to.
"""
