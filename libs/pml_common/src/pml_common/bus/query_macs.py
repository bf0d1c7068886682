"""Proofs of queries and replies: MACs under a key that only client and owner can derive (ADR 0045).

A query's covers its subject, the subject of its reply, its time, its body and a nonce; a reply's
covers the query's. A query is accepted once, by each replica, and only while it is new.
"""

import hmac
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from itertools import count
from secrets import token_hex
from typing import Final, NamedTuple

from pml_common.bus import codec
from pml_common.bus.codec import Envelope
from pml_common.bus.errors import NotBelieved
from pml_common.bus.identity import Identity
from pml_common.contracts.base import Contract, Query
from pml_common.contracts.catalog import QueryType

MAC = "Pml-Mac"
"""Header of a query: `<client's kid>.<time in ms>.<nonce>.<mac>`, with a MAC for each trusted key
of the owner; of a reply: `<owner's kid>.<mac>`."""
ERROR_CODE = "Pml-Error-Code"
"""Header of a reply that is an error."""

AGE_S: Final = 30
"""Seconds by which the time of a query may differ from the server's clock."""
_REMEMBERED: Final = 250_000
"""Nonces, of some 170 bytes each."""
_TOGETHER_MS: Final = 100
"""Milliseconds of sending whose nonces are forgotten together."""
_BEFORE_SERVING_S: Final = 1.0
"""A replica accepts queries that were sent so long before it began to serve: clocks are only read
so precisely. Older ones may have reached a replica that is gone."""
_QUERY, _REPLY, _KEY = "pml-query-v1", "pml-reply-v1", "pml-query-key-v1"


class RecentNonces:
    """The nonces of queries that may still be accepted, by the time at which they were sent.

    Where they are more than `most`, those sent the longest ago are forgotten, and queries sent
    until then are refused. Times are in milliseconds.
    """

    def __init__(self, most: int = _REMEMBERED) -> None:
        self._most = most
        self._seen: dict[int, set[str]] = {}
        self._count = 0
        self.not_before = 0

    def fault(self, nonce: str, sent: int, now: int) -> str | None:
        """Remember a nonce, and return why its query is refused, or None."""
        late = (now - sent) / 1000
        if abs(late) > AGE_S:
            which = "ago" if late > 0 else "ahead"
            clock = f"by the NATS server's clock; at most {AGE_S} s are accepted"
            return f"it was sent {abs(late):.1f} s {which} {clock}"
        together = self._seen.get(sent // _TOGETHER_MS)
        if together is not None and nonce in together:
            return "it was received before"
        if sent < self.not_before:
            return "it is older than what this replica remembers"
        if together is None:
            self._forget_until(now - 1000 * AGE_S)
            together = self._seen[sent // _TOGETHER_MS] = set()
        together.add(nonce)
        self._count += 1
        while self._count > self._most:
            self._forget(min(self._seen))
        return None

    def _forget_until(self, accepted_from: int) -> None:
        """Forget what is too old to be accepted."""
        for each in [each for each in self._seen if (each + 1) * _TOGETHER_MS <= accepted_from]:
            self._forget(each)

    def _forget(self, together: int) -> None:
        """Forget what was sent together, and accept nothing from before its end: also not if the
        clock is set back."""
        self._count -= len(self._seen.pop(together))
        self.not_before = max(self.not_before, (together + 1) * _TOGETHER_MS)


class _Pair(NamedTuple):
    """A hash under the secret of client and owner of a query, with a key's id of one end and the
    service of the other."""

    kid: str
    service: str
    keyed: blake2b

    def mac(self, content: bytes) -> str:
        """Return the MAC of a content."""
        taken = self.keyed.copy()  # a third of the time of a hash with a key
        taken.update(content)
        return taken.hexdigest()


class QueryMacs:
    """Proves the queries and replies of one process, and verifies those of others."""

    def __init__(self, identity: Identity, now: Callable[[], datetime]) -> None:
        """`now` is the server's time."""
        self._identity = identity
        self._now = now
        self._nonces = RecentNonces()
        # Found once: a query costs microseconds, and looking up keys some more.
        self._owners: dict[str, Sequence[_Pair]] = {}
        self._clients: dict[tuple[str, str], _Pair] = {}
        # Nobody has to guess a nonce: it only differs from all others.
        self._process, self._numbers = token_hex(8), count()

    def begin(self) -> None:
        """Accept queries that are sent from now on; called again, it changes nothing."""
        if not self._nonces.not_before:
            self._nonces.not_before = self._ms() - int(1000 * _BEFORE_SERVING_S)

    def prove_query(
        self, query_type: QueryType[Query, Contract], subject: str, reply: str, digest: str
    ) -> str:
        """Return the header of a query. Raises WrongSender."""
        owners = self._owners_of(query_type)
        kid = self._identity.key_of(*query_type.clients).kid
        stamp = f"{kid}.{self._ms()}.{self._process}{next(self._numbers):08x}"
        content = _query_content(subject, reply, stamp, digest)
        return ".".join((stamp, *[owner.mac(content) for owner in owners]))

    def require_query(self, query_type: QueryType[Query, Contract], query: Envelope) -> None:
        """Raise NotBelieved unless one of the type's clients has sent this query, now, and for the
        first time; WrongSender unless we are its owner."""
        stated = query.headers.get(MAC)
        if stated is None:
            raise NotBelieved(f"it has no MAC; the {_any_of(query_type)} proves what it asks")
        kid, sent, nonce, macs = [*stated.split(".", 3), "", "", ""][:4]
        client = self._client_of(query_type, kid)
        if client is None:
            raise NotBelieved(f"its key {kid[:16]} is not the {_any_of(query_type)}'s")
        stamp = stated[: len(stated) - len(macs) - 1]
        content = _query_content(
            query.subject, query.reply, stamp, codec.digest_of(query.headers, query.data)
        )
        if not _is_among(client.mac(content), macs):
            raise NotBelieved(f"its MAC is not the {client.service}'s for what was received")
        fault = self._nonces.fault(nonce, int(sent), self._ms())
        if fault is not None:
            raise NotBelieved(fault)

    def prove_reply(
        self,
        query_type: QueryType[Query, Contract],
        query: Envelope,
        headers: Mapping[str, str],
        data: bytes,
    ) -> str:
        """Return the header of a reply to a query that `require_query` has accepted."""
        stated = query.headers[MAC]
        client = self._client_of(query_type, stated.partition(".")[0])
        if client is None:
            raise NotBelieved("its query was not accepted")
        return f"{client.kid}.{client.mac(_reply_content(stated, headers, data))}"

    def reply_fault(
        self, query_type: QueryType[Query, Contract], query: Envelope, reply: Envelope
    ) -> str | None:
        """Return why this is not its owner's reply to our query; None if it is."""
        stated = reply.headers.get(MAC)
        if stated is None:
            return f"it has no MAC; the {query_type.owner} proves what it replies"
        kid, _, mac = stated.partition(".")
        for owner in self._owners_of(query_type):
            if owner.kid == kid:
                content = _reply_content(query.headers[MAC], reply.headers, reply.data)
                if _is_among(owner.mac(content), mac):
                    return None
                return f"its MAC is not the {owner.service}'s for this query and what was received"
        return f"its key {kid[:16]} is not the {query_type.owner}'s"

    def _owners_of(self, query_type: QueryType[Query, Contract]) -> Sequence[_Pair]:
        """Return what we share, as a client, with each trusted key of the owner."""
        found = self._owners.get(query_type.name)
        if found is None:
            ours, owner = self._identity.key_of(*query_type.clients), query_type.owner
            found = self._owners[query_type.name] = [
                _pair(theirs.kid, owner, ours.shared_with(theirs, _KEY))
                for theirs in self._identity.trusted.of(owner)
            ]
        return found

    def _client_of(self, query_type: QueryType[Query, Contract], kid: str) -> _Pair | None:
        """Return what we share, as the owner, with the client that has this key; its `kid` is
        ours."""
        between = query_type.name, kid
        found = self._clients.get(between)
        if found is not None:
            return found
        for client in query_type.clients:
            theirs = self._identity.trusted.find(client, kid)
            if theirs is not None:
                ours = self._identity.key_of(query_type.owner)
                found = _pair(ours.kid, client, ours.shared_with(theirs, _KEY))
                self._clients[between] = found
        return found

    def _ms(self) -> int:
        return int(self._now().timestamp() * 1000)


def _any_of(query_type: QueryType[Query, Contract]) -> str:
    return " or the ".join(query_type.clients)


def _is_among(expected: str, macs: str) -> bool:
    """Return whether one of the MACs, separated by points, is the expected one."""
    mine, theirs = expected.encode(), _encoded(macs)
    if len(theirs) == len(mine):  # there is one, but while a key is being replaced
        return hmac.compare_digest(mine, theirs)
    return any(hmac.compare_digest(mine, mac) for mac in theirs.split(b"."))


def _pair(kid: str, service: str, key: bytes) -> _Pair:
    return _Pair(kid, service, blake2b(key=key, digest_size=32))


def _query_content(subject: str, reply: str, stamp: str, digest: str) -> bytes:
    return _encoded(f"{_QUERY}\n{subject}\n{reply}\n{stamp}\n{digest}")


def _reply_content(query_mac: str, headers: Mapping[str, str], data: bytes) -> bytes:
    code = headers.get(ERROR_CODE, "")
    # An error's text is always its body: a reference to another would not be read.
    digest = codec.digest(data) if code else codec.digest_of(headers, data)
    return _encoded(f"{_REPLY}\n{query_mac}\n{code}\n{digest}")


def _encoded(text: str) -> bytes:
    """Encode what may come from anybody: a header may hold what is no text."""
    return text.encode(errors="replace")
