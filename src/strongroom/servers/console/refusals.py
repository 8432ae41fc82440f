"""The refusal of a request to the read API. Its document is made in api/endpoints.py."""

from __future__ import annotations


class ApiRefusal(Exception):
    """A request that is not answered.

    Arguments:
        status: of the answer.
        code: one word for programs.
        text: what is wrong, and what to do.
        needs: the credential that helps, as ProblemDetail has it; None = none does.
    """

    def __init__(self, status: int, code: str, text: str, needs: str | None = None) -> None:
        super().__init__(text)
        self.status, self.code, self.text, self.needs = status, code, text, needs
