"""A hook of schemathesis: no generated pull waits for longer than a second, where the server would let it wait for a minute."""

import schemathesis

LONGEST_MS = 1_000
# Beyond it a number is one that the document forbids, and has to be sent as it is.
LARGEST_ALLOWED = 2**53 - 1


@schemathesis.hook
def before_call(context, case, kwargs):
    body = case.body
    if isinstance(body, dict):
        wait_ms = body.get("wait_ms")
        if isinstance(wait_ms, int) and LONGEST_MS < wait_ms <= LARGEST_ALLOWED:
            body["wait_ms"] = LONGEST_MS
