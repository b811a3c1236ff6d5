"""What libraries of each language do about sending again, as data.

A client that is set up to retry sends a write again without a loop in sight. Which methods it
repeats is the library's own rule, from its documentation: `REPEATABLE` are the ones that RFC 9110
calls idempotent, `BEFORE_SENDING` says that only a connection that was never made is tried again.
"""

from __future__ import annotations

from dataclasses import dataclass

Methods = frozenset[str] | None
"""Upper-case HTTP methods that are repeated; None where the source does not say."""

EVERY = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "POST", "PATCH"})
REPEATABLE = EVERY - {"POST", "PATCH"}
BEFORE_SENDING: frozenset[str] = frozenset()
ALWAYS = ("",)  # no option asks for it: being called is enough


@dataclass(frozen=True, slots=True)
class Policy:
    """One way in which a library is told to send again.

    `makers` are the names whose call (or literal) is the policy, or sets it on the client it is
    called on; without any, every call of `library` that is given one of `options` (`ALWAYS`: every
    one). `listed` names what lists the methods, `decides` what holds a function that is asked for
    each failure, `named` what the library's own such functions repeat.
    `keyed`: the library sends a key that stays the same. `client`: where the client is found,
    the "receiver", the first "argument", or "global" for the language's own requests.
    """

    library: str
    makers: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    repeats: Methods = EVERY
    listed: tuple[str, ...] = ()
    decides: tuple[str, ...] = ()
    named: tuple[tuple[str, Methods], ...] = ()
    keyed: bool = False
    client: str = "receiver"


@dataclass(frozen=True, slots=True)
class Resends:
    """What a language's libraries do about sending again.

    `runners` are libraries whose calls and decorators run code again; `setters` methods by which a
    client is given a policy, `attributes` fields through which it is, `transports` the methods of
    a type of the repository that a client sends through, `interceptors` the end of the path by
    which a client is told what to do with a failed answer.
    """

    policies: tuple[Policy, ...] = ()
    runners: tuple[str, ...] = ()
    setters: frozenset[str] = frozenset()
    attributes: frozenset[str] = frozenset()
    transports: frozenset[str] = frozenset()
    interceptors: tuple[str, ...] = ()

    def on_argument(self) -> bool:
        """Tell whether a client is also set up by a function that it is given to."""
        return any(p.client == "argument" for p in self.policies)

    def calls(self) -> frozenset[str]:
        """Return the last names of the calls that may set a client up."""
        made = {m for p in self.policies for m in p.makers}
        return frozenset(made | self.setters | set(self.interceptors[-1:]))


_URLLIB3 = ("allowed_methods", "method_whitelist")
PYTHON = Resends(
    policies=(
        Policy("urllib3", ("Retry",), repeats=REPEATABLE, listed=_URLLIB3),
        Policy("requests", ("Retry",), repeats=REPEATABLE, listed=_URLLIB3),
        Policy("requests", ("HTTPAdapter",), ("max_retries",), BEFORE_SENDING),
        Policy("httpx", ("HTTPTransport", "AsyncHTTPTransport"), ("retries",), BEFORE_SENDING),
        Policy("httpx2", ("HTTPTransport", "AsyncHTTPTransport"), ("retries",), BEFORE_SENDING),
        Policy(
            "httpx_retries", ("Retry", "RetryTransport"),
            repeats=REPEATABLE, listed=("allowed_methods",),
        ),
        Policy(
            "aiohttp_retry",
            (
                "RetryClient", "ExponentialRetry", "RandomRetry", "ListRetry", "FibonacciRetry",
                "JitterRetry", "RetryOptions",
            ),
            listed=("methods",),
        ),
        Policy("botocore", ("Config",), ("retries",)),
        Policy("boto3", ("Config",), ("retries",)),
        Policy("stripe", (), ("max_network_retries",), keyed=True),
        Policy("openai", (), ("max_retries",)),
        Policy("anthropic", (), ("max_retries",)),
    ),
    runners=("tenacity", "backoff", "stamina", "retrying", "retry", "retry2", "opnieuw", "riprova"),
    setters=frozenset({"mount", "setopt"}),
    attributes=frozenset({"max_retries", "max_network_retries", "retries"}),
    transports=frozenset({"handle_request", "handle_async_request", "send"}),
)  # fmt: skip

JAVASCRIPT = Resends(
    policies=(
        Policy(
            # By default also what fails on the network, whatever its method.
            "axios-retry", (), ALWAYS, decides=("retryCondition",), client="argument",
            named=(
                ("isIdempotentRequestError", REPEATABLE),
                ("isSafeRequestError", frozenset({"GET", "HEAD", "OPTIONS"})),
            ),
        ),
        Policy(
            "retry-axios", ("attach",), repeats=REPEATABLE, listed=("httpMethodsToRetry",),
            client="argument",
        ),
        Policy("got", (), ("retry",), REPEATABLE, listed=("methods",)),
        Policy("ky", (), ("retry",), REPEATABLE, listed=("methods",)),
        Policy("gaxios", (), ("retry", "retryConfig"), REPEATABLE, listed=("httpMethodsToRetry",)),
        Policy("ofetch", (), ("retry",)),
        Policy("superagent", ("retry",)),
        Policy("fetch-retry", (), ALWAYS, decides=("retryOn",)),
        Policy("@vercel/fetch-retry", (), ALWAYS),
        Policy("node-fetch-retry", (), ("retry",)),
        Policy("requestretry", (), ALWAYS, decides=("retryStrategy",)),
        Policy("@octokit/plugin-retry", ("retry",)),
        Policy("undici", ("RetryAgent", "retry"), repeats=REPEATABLE, listed=("methods",)),
        Policy("undici", ("setGlobalDispatcher",), ALWAYS, None, client="global"),
        Policy("stripe", (), ("maxNetworkRetries",), keyed=True),
        Policy("openai", (), ("maxRetries",)),
        Policy("@anthropic-ai/sdk", (), ("maxRetries",)),
        Policy("@aws-sdk", (), ("maxAttempts", "retryStrategy")),
    ),
    runners=(
        "p-retry", "async-retry", "exponential-backoff", "promise-retry", "ts-retry-promise",
        "ts-retry", "retry", "@lifeomic/attempt", "cockatiel", "retry-as-promised", "@std/async",
    ),
    attributes=frozenset({"maxRetries", "retry", "raxConfig"}),
    transports=frozenset({"dispatch", "intercept"}),
    interceptors=("interceptors", "response", "use"),
)  # fmt: skip

GO = Resends(
    policies=(
        Policy("go-retryablehttp", ("NewClient", "RoundTripper")),
        Policy("resty", ("SetRetryCount",)),
        Policy("resty.dev", ("SetRetryCount",), (), None),
        Policy("rehttp", ("NewTransport",), (), None),
        Policy("slack", ("OptionRetry", "OptionRetryConfig"), (), None),
    ),
    runners=("retry-go", "go-retry", "backoff", "retry", "util/retry", "failsafe-go"),
    setters=frozenset({"SetTransport", "Use"}),
    attributes=frozenset({"Transport"}),
    transports=frozenset({"RoundTrip"}),
)  # fmt: skip

RUST = Resends(
    policies=(
        Policy("reqwest_retry", ("RetryTransientMiddleware",)),
        Policy("reqwest_retry_after", ("RetryAfterMiddleware",)),
    ),
    runners=("tokio_retry", "tokio_retry2", "backon", "backoff", "again", "tryhard", "backoff_rs"),
    setters=frozenset({"with", "with_arc"}),
    transports=frozenset({"handle"}),
)
