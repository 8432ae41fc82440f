"""Authentication: the tokens of one logon, from the first to the last.

Lives here: the steps of SPNEGO and NTLM, in the wrapping that the client chose. Must not live here:
the proof itself (auth/ntlm.py), sessions. Sources: [MS-SMB2] section 3.3.5.5.3; RFC 4178; [MS-NLMP]
section 3.2.5; smb.md 2.2.
"""

from __future__ import annotations

import hmac

import msgspec

from strongroom.auth import ntlm as proof
from strongroom.auth.accounts import Account, Accounts
from strongroom.auth.ntlm import NtlmAttempt
from strongroom.wire.smb.setup import ntlm, spnego
from strongroom.wire.smb.structures import MalformedMessage


class LogonFailed(Exception):
    """The client has not proven that it knows a key. The error does not say why."""


class ContinueLogon(msgspec.Struct, frozen=True):
    """The authentication continues: `token` is sent, and the client must answer with another
    one."""

    token: bytes


class LoggedOn(msgspec.Struct, frozen=True):
    """The client has proven that it knows a key of the account.

    Attributes:
        account_key: the key of the account that it has proven to know.
        key: the secret that both sides now share.
        token: the last one for the client; it may be empty.
    """

    account: Account
    account_key: bytes
    workstation: str
    key: bytes
    token: bytes

    def __repr__(self) -> str:
        return f"LoggedOn({self.account.name!r})"


class Authentication:
    """One authentication under way: `step` takes each token of the client.

    Arguments:
        server_name: the server's name in the challenge.
        challenge: 8 random bytes, for this authentication only.
        time: a FILETIME.
    """

    def __init__(self, server_name: str, challenge: bytes, time: int) -> None:
        self._server_name = server_name
        self._challenge = challenge
        self._time = time
        self._mechanisms: bytes | None = None  # as they were sent; None = NTLMSSP without SPNEGO
        self._is_first_choice = True
        self._messages: list[bytes] = []
        self.user = ""

    @property
    def is_last_step(self) -> bool:
        """Whether the next token must be the proof."""
        return len(self._messages) > 1

    def step(self, token: bytes, accounts: Accounts) -> ContinueLogon | LoggedOn:
        """Raises: LogonFailed; MalformedMessage."""
        if token.startswith(ntlm.SIGNATURE):
            return self._ntlm(token, None, accounts)
        if not self._messages and self._mechanisms is None:
            return self._first(token, accounts)
        answer = spnego.read_next(token)
        if answer.token is None or self._mechanisms is None:
            raise MalformedMessage("the token carries none of NTLMSSP")
        return self._ntlm(answer.token, answer.mic, accounts)

    def _first(self, token: bytes, accounts: Accounts) -> ContinueLogon | LoggedOn:
        first = spnego.read_first(token)
        if spnego.NTLMSSP not in first.mechanisms:
            raise LogonFailed
        self._mechanisms = first.raw_mechanisms
        self._is_first_choice = first.mechanisms[0] == spnego.NTLMSSP
        if self._is_first_choice and first.token is not None:
            return self._ntlm(first.token, None, accounts)
        # The token is of a mechanism that is not supported, or there is none.
        state = spnego.ACCEPT_INCOMPLETE if self._is_first_choice else spnego.REQUEST_MIC
        return ContinueLogon(spnego.write_response(state, names_mechanism=True))

    def _ntlm(
        self, token: bytes, mic: bytes | None, accounts: Accounts
    ) -> ContinueLogon | LoggedOn:
        kind = ntlm.message_type(token)
        if kind == ntlm.NEGOTIATE and not self._messages:
            return self._challenged(token)
        if kind == ntlm.AUTHENTICATE and self.is_last_step:
            return self._authenticated(token, mic, accounts)
        raise MalformedMessage(f"message {kind} of NTLM is not expected here")

    def _challenged(self, token: bytes) -> ContinueLogon:
        flags = ntlm.read_negotiate_flags(token)
        if flags & ntlm.REQUIRED != ntlm.REQUIRED:
            raise LogonFailed
        answer = ntlm.write_challenge(flags, self._challenge, self._server_name, self._time)
        self._messages = [token, answer]
        if self._mechanisms is None:
            return ContinueLogon(answer)
        state = spnego.ACCEPT_INCOMPLETE if self._is_first_choice else spnego.REQUEST_MIC
        return ContinueLogon(spnego.write_response(state, names_mechanism=True, token=answer))

    def _authenticated(self, token: bytes, mic: bytes | None, accounts: Accounts) -> LoggedOn:
        message = ntlm.read_authenticate(token)
        self.user = message.user
        if proof.is_malformed(message.nt_response):
            raise MalformedMessage("the pairs of an NTLMv2 response do not end within it")
        attempt = NtlmAttempt(
            user=message.user,
            domain=message.domain,
            response=message.nt_response,
            encrypted_key=message.encrypted_key,
            flags=message.flags,
            challenge=self._challenge,
            mic=message.mic,
            messages=b"".join((*self._messages, message.without_mic)),
        )
        self._messages = [b""]  # one proof for each challenge
        account = accounts.get(message.user.lower())
        key = proof.verified_key(attempt, proof.passwords_of(account))
        if key is None or account is None:
            raise LogonFailed
        account_key = _proven_key(attempt, account)
        last_token = self._last_token(key, message.flags, mic)
        return LoggedOn(account, account_key, message.workstation, key, last_token)

    def _last_token(self, key: bytes, flags: int, mic: bytes | None) -> bytes:
        """Return the answer to a proof. A client whose first choice was refused must sign its list
        of mechanisms. Otherwise an attacker could change the list in transit, and so choose the
        mechanism."""
        if self._mechanisms is None:
            return b""
        if mic is None:
            if not self._is_first_choice:
                raise LogonFailed
            return spnego.write_response(spnego.ACCEPT_COMPLETED)
        exchanged = proof.exchanges_key(flags)
        expected, answer = (
            proof.mechanisms_mic(key, direction, self._mechanisms, exchanged=exchanged)
            for direction in (proof.TO_SERVER, proof.TO_CLIENT)
        )
        if not hmac.compare_digest(expected, mic):
            raise LogonFailed
        return spnego.write_response(spnego.ACCEPT_COMPLETED, mic=answer)


def _proven_key(attempt: NtlmAttempt, account: Account) -> bytes:
    """Return the key of an account that a successful attempt has proven."""
    return next(
        key
        for key, password in zip(account.keys, proof.passwords_of(account), strict=True)
        if proof.verified_key(attempt, (password,)) is not None
    )
