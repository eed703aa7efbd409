"""Why a request gets no answer: status, code, one line.

Never a traceback, and never a part of a prompt or of a key.
"""

from __future__ import annotations


class Refused(Exception):
    """A request that is not answered. retry_after_s: when to try again, for 429 and 503. param: the
    field of the request that is the reason.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        retry_after_s: float | None = None,
        param: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message
        self.retry_after_s, self.param = retry_after_s, param

    @property
    def headers(self) -> dict[str, str]:
        if self.retry_after_s is None:
            return {}
        return {"Retry-After": str(max(1, round(self.retry_after_s)))}

    def body(self) -> dict[str, object]:
        """Return OpenAI's form of an error."""
        kinds = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
        kind = kinds.get(self.status, "server_error" if self.status >= 500 else "")
        return failure(self.message, kind or "invalid_request_error", self.code, self.param)


def failure(message: str, kind: str, code: str, param: str | None = None) -> dict[str, object]:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}
