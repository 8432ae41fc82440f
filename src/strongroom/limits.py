"""All limits of the service, with their pages of the reference.

Must not live here: checks. Source: "Scalability targets for Blob storage", Put Blob, Put Block, Put
Block List, Set Container ACL, CORS, "Naming and referencing containers, blobs, and metadata".
"""

from __future__ import annotations

from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB

# Put Blob / Put Block by x-ms-version: (since, Put Block, Put Blob).
BLOCK_SIZES_BY_VERSION: Final = (
    ("2019-12-12", 4000 * MIB, 5000 * MIB),
    ("2016-05-31", 100 * MIB, 256 * MIB),
    ("", 4 * MIB, 64 * MIB),
)
# Append Block by x-ms-version: (since, bytes).
APPEND_SIZES_BY_VERSION: Final = (("2022-11-02", 100 * MIB), ("", 4 * MIB))
COMMITTED_BLOCKS_MAX: Final = 50_000
UNCOMMITTED_BLOCKS_MAX: Final = 100_000
BLOCK_ID_BYTES_MAX: Final = 64
UNCOMMITTED_LIFETIME_S: Final = 7 * 24 * 3600
BLOCK_LIST_BODY_BYTES_MAX: Final = 16 * MIB
XML_BODY_BYTES_MAX: Final = 64 * KIB

METADATA_BYTES_MAX: Final = 8 * KIB
# One stored HTTP property. The limit keeps a blob's record within the limits of an engine.
PROPERTY_CHARS_MAX: Final = 4 * KIB
STORED_POLICIES_MAX: Final = 5
POLICY_ID_CHARS_MAX: Final = 64
CORS_RULES_MAX: Final = 5
CORS_BYTES_MAX: Final = 2 * KIB
CORS_ORIGIN_CHARS_MAX: Final = 256
CORS_LITERAL_HEADERS_MAX: Final = 64
CORS_PREFIX_HEADERS_MAX: Final = 2
RETENTION_DAYS_MAX: Final = 365

LIST_RESULTS_MAX: Final = 5000
# Page blobs: Put Blob, Put Page, Get Page Ranges.
PAGE_BLOB_BYTES_MAX: Final = 8 * 1024 * 1024 * MIB
PUT_PAGE_BYTES_MAX: Final = 4 * MIB
PAGE_RANGES_MAX: Final = 10_000
RANGE_DIGEST_BYTES_MAX: Final = 4 * MIB
COPY_SOURCE_CHARS_MAX: Final = 2 * KIB
COPY_FROM_URL_BYTES_MAX: Final = 256 * MIB
# Copies of this server's own blobs up to this size complete before the answer; larger copies are
# pending first.
COPY_AT_ONCE_BYTES_MAX: Final = 16 * MIB
# How long Copy Blob of a blob of this server waits for a pending copy to end.
COPY_WAIT_S: Final = 2.0
FILE_BYTES_MAX: Final = 4 * 1024 * 1024 * MIB
# Copy File waits for the end of a copy from another server up to this size.
FILE_COPY_AWAITED_BYTES_MAX: Final = 8 * MIB

# Queues: Put Message, Get Messages, Update Message.
MESSAGE_TEXT_BYTES_MAX: Final = 64 * KIB
MESSAGE_BODY_BYTES_MAX: Final = 512 * KIB
MESSAGES_PER_GET: Final = (1, 32)
PUT_VISIBILITY_S: Final = (0, 7 * 24 * 3600)
GET_VISIBILITY_S: Final = (1, 7 * 24 * 3600)
DEFAULT_VISIBILITY_S: Final = 30
MESSAGE_TTL_S: Final = (1, 10**18 - 1)
# Before x-ms-version 2017-07-29.
MESSAGE_TTL_S_BEFORE_2017: Final = (1, 7 * 24 * 3600)
DEFAULT_MESSAGE_TTL_S: Final = 7 * 24 * 3600

BLOB_NAME_CHARS_MAX: Final = 1024
BLOB_NAME_SEGMENTS_MAX: Final = 254
LEASE_DURATION_S: Final = (15, 60)
LEASE_BREAK_PERIOD_S: Final = (0, 60)
WAIT_S: Final = (1, 60)
CLIENT_REQUEST_ID_CHARS_MAX: Final = 1024

# Our own choices (docs/performance.md has the measurements).
INLINE_BODY_BYTES_MAX: Final = 8 * KIB
# Bodies up to this length (a lock, a flag, a counter) lie in the blob's own record.
RECORD_BODY_BYTES_MAX: Final = 512
# Message texts up to this length lie in the message's own record, which moves with each retrieval.
INLINE_TEXT_BYTES_MAX: Final = 2 * KIB
# How many expired messages one retrieval also removes, and one commit of the sweep.
EXPIRED_PER_COMMIT_MAX: Final = 64
# How many records one page of a listing may read; a page that reads more ends early, with a marker.
LIST_SCANNED_RECORDS_MAX: Final = 50_000
# About how many bytes of records one page may read, and how many listings of blobs may have their
# page in memory at once.
LIST_SCANNED_BYTES_MAX: Final = 16 * MIB
LISTINGS_AT_ONCE_MAX: Final = 8
# Blob Batch.
BLOB_BATCH_BODY_BYTES_MAX: Final = 4 * MIB
BLOB_BATCH_REQUESTS_MAX: Final = 256
# How many index entries one page of Find Blobs by Tags may read; see LIST_SCANNED_RECORDS_MAX.
FIND_SCANNED_ENTRIES_MAX: Final = 20_000
# Tables: the JSON of one entity (each character may be escaped), and of a batch.
ENTITY_BODY_BYTES_MAX: Final = 4 * MIB
BATCH_BODY_BYTES_MAX: Final = 4 * MIB
BATCH_OPERATIONS_MAX: Final = 100
TABLE_RESULTS_MAX: Final = 1000
# The approximate size of a page of entities.
TABLE_PAGE_BYTES_MAX: Final = 4 * MIB
# Up to this size of the signed text, every combination of the clients' variants is tried.
SIGNED_CHARS_COMBINED_MAX: Final = 16 * KIB
# HTTP server.
REQUEST_HEAD_BYTES_MAX: Final = 64 * KIB
REQUEST_HEADERS_MAX: Final = 256
REQUEST_TARGET_BYTES_MAX: Final = 16 * KIB
# Clients repeat short queries. Longer queries, which anybody may send, are not cached.
REMEMBERED_QUERY_CHARS_MAX: Final = 1024
REMEMBERED_QUERY_PARAMETERS_MAX: Final = 32
