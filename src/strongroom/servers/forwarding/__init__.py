"""Requests for a share that another gateway serves: forwarded to it, and its answers passed on.

| file | what lives there |
| --- | --- |
| `announcements.py` | where a gateway is reached, and by which certificate it is known |
| `certificate.py` | the certificate of this run, and the TLS contexts of both sides |
| `proofs.py` | the header of the hop: whose request it is, and the proof that a gateway sent it |
| `questions.py` | what a gateway asks another one for itself |
| `peer_exchange.py` | one request to another gateway, and the answer to it, as streams |
| `stream_room.py` | how many requests may be at another gateway at a time |
| `peers.py` | the connections to the other gateways |
| `forwarder.py` | who answers a request: this gateway or another |
| `receiving.py` | the listener for the other gateways |
| `counts.py` | the metrics |
| `forwarding.py` | the composition of all of this |
"""
