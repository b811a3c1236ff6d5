"""Every linguistic rule of the scanner, as data, in one place.

Names are split into lower-case words (`createIssue`, `create_issue`, `CREATE-ISSUE` are the same
two words); a rule speaks of words, never of substrings.

Over 400 lines: lists of words, to be read beside each other.
"""

from __future__ import annotations

import functools
import re

_SPLIT = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


@functools.lru_cache(maxsize=20_000)
def split(name: str) -> tuple[str, ...]:
    """Return the lower-case words of an identifier, path or label."""
    return tuple(w.lower() for w in _SPLIT.findall(name))


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Verbs. A call of something outside is judged by the first verb of its name.
ADDING = _words(
    "crosspost "
    "create add append insert post send submit publish push enqueue dispatch emit upload import "
    "place charge pay refund capture transfer withdraw deposit payout purchase buy sell trade swap "
    "order book reserve register invite schedule trigger run start launch deploy provision "
    "execute invoke call dial notify remind comment reply react vote star fork clone copy "
    "duplicate "
    "mint issue sign broadcast stake redeem claim exercise renew retry resend generate make new "
    "write save record log track commit subscribe authorize authorise initiate request rerun "
    "restart "
    "reset increment decrement bulk batch allocate associate rebuild "
    "restock produce forward share spawn kick adjust attach "
    "draft convert merge rollback undo redeploy exec perform apply accept open "
    "mutate "
    "topup fund borrow repay settle tip donate gift lend bridge wrap unwrap delegate fulfill ship"
)
DECLARING = _words(
    "deallocate disassociate respond rsvp unban timeout "
    "set put update upsert replace delete remove destroy drop purge archive unarchive restore "
    "cancel void revoke close reopen approve reject enable disable activate deactivate lock unlock "
    "pin unpin rename move assign unassign label tag untag mark mute unmute ban block unblock "
    "suspend resume pause stop terminate kill scale patch modify edit configure toggle finalize "
    "complete dismiss hide follow unfollow unsubscribe detach link unlink grant deny "
    "cordon uncordon drain rotate refresh sync uninstall upgrade install store "
    "persist overwrite truncate clear expire verify confirm acknowledge ack change promote demote "
    "reassign revert trash undelete publishdraft ensure provision mkdir unset disconnect "
    "unstar unlike unvote unpublish unshare unresolve transition decline leave join kick checkout"
)
READING = _words(
    "get list read fetch find search query lookup show describe view retrieve load select count "
    "check validate has is can exists head peek scan browse inspect preview estimate simulate "
    "calculate compute suggest resolve download export status info stats history explain compare "
    "diff analyze analyse summarize format parse render convert encode decode build prepare "
    "test ping health whoami version help discover detect evaluate monitor watch tail wait poll "
    "quote price iter iterate try ask collect extract match filter sort group aggregate "
    "last total affected saturating wrapping checked overflowing trim strip starts ends split "
    "connect login logout authenticate init initialize setup close flush"
)
ACTING = ADDING | DECLARING
# Words that may stand before the verb of a name.
LEADING = _words("async do try handle on tool api mcp bulk batch safe_ raw internal")
# Names whose every write is a question sent by POST.
QUERYING = _words(
    "search query find lookup check validate suggest preview estimate simulate calculate count "
    "list filter availability get describe explain aggregate autocomplete busy freebusy similar "
    "recommend analyze analyse rank rerank embed embeddings tokenize qr render inspect"
)
STRICT_READ = _words(
    "get list read search find query lookup check validate show describe view retrieve count fetch "
    "suggest preview estimate simulate calculate compare explain browse inspect download export"
)
CARRIERS = _words("fetch make do perform call execute exec resource")
# What else may stand in the name of a function that sends whatever it is given.
CARRIED = _words(
    "api apis json http https url endpoint request response raw from with via to by and or retry "
    "retries timeout auth authed authenticated authorized safe internal graphql gql rest data "
    "client proxy signed token helper wrapper"
)
# Words that name a thing as often as an act.
NOUNS = _words(
    "invite order record log issue request comment label tag star trade transfer charge schedule "
    "book branch stake swap archive mark draft share note batch notice subscribe call ban"
)
# Methods of plain containers: no effect unless the object is a client of something.
CONTAINER = _words(
    "append push add set insert update remove delete clear pop extend write put register emit copy "
    "merge replace call run start move store save lock close stop open log start resolve reject "
    "request apply new make clone attach link sort commit record mark track sign schedule dispatch "
    "invoke exec send post order generate format index fork subscribe unsubscribe notify wrap "
    "refresh "
    "complete reset enable disable trigger build convert sync join leave react cancel retry"
)
# Acts on a thing that was fetched, which no list or mapping has a method for.
ACTS = _words(
    "start stop restart kill pause unpause resume reboot terminate destroy cancel run delete "
    "remove save publish send deploy shutdown suspend"
)
# What a client in this process is set up with: `SetBasicAuth`, `setApiKey`, `set_user_agent`.
SET_UP = _words(
    "auth basic bearer token api key access credentials header headers user agent base url proxy "
    "timeout debug logger log level password username http client transport content type accept "
    "cookie cookies query param params body form data context retry count tls config result output "
    "env option options default defaults oauth2 jwt"
)
# First words of a function that was imported by its name, which leave no doubt that it acts.
SENDS = _words(
    "send submit publish broadcast transfer mint burn pay refund charge deploy withdraw deposit "
    "swap stake unstake upload invite"
)
# First words that make or secure a value: `ensure_async`, `make_filter`.
MAKES = _words("ensure make new generate apply open commit set sync init order")
# What functions make in this process: `createTransferInstruction`, `createPaymentUrl`.
MADE = _words(
    "instruction instructions message options params schema error event handler middleware "
    "client server transport hash url uri header "
    "headers key keys request response config context logger "
    "connection session query builder filter selector proxy "
    "store cache stream buffer pool tool tools"
)
# Methods of lists, whatever the list came from.
ITERATES = frozenset({
    "map", "filter", "forEach", "reduce", "some", "every", "find", "findIndex", "slice", "splice",
    "join", "includes", "indexOf", "sort", "flatMap", "flat", "reverse", "concat", "then", "catch",
    "finally", "iter", "collect", "unwrap_or", "startsWith", "endsWith", "padStart", "padEnd",
})  # fmt: skip
# Without arguments, these let go of what is held in this process.
LETS_GO = _words("close aclose disconnect quit end shutdown release flush dispose exit logout")
# What is made in this process to be filled, and sent by another call.
FILLED = _words(
    "transaction builder form headers params options config message query document instruction "
    "request payload filter"
)
# Verbs that make something where they are a method of many: `client.images.build(…)`.
MAKES_OF_MANY = _words("build pull")
CLIENT = _words(
    "client api sdk service services db database repo repository session http conn connection "
    "gateway provider stripe slack github notion broker exchange wallet queue producer publisher "
    "mailer smtp bot redis collection table store manager account contract signer engine"
)

# Parts of a client that live in the process: what is put into them goes nowhere by itself.
IN_PROCESS = _words(
    "span tracer spans hooks headers handlers listeners interceptors adapters cookies middleware"
)

HTTP_VERBS = {
    "post": "POST", "put": "PUT", "patch": "PATCH", "delete": "DELETE", "get": "GET",
    "head": "HEAD",
    "options": "OPTIONS", "del": "DELETE",
}  # fmt: skip
HTTP_READS = frozenset({"GET", "HEAD", "OPTIONS"})
HTTP_DECLARATIVE = frozenset({"PUT", "PATCH", "DELETE"})
# Words of a path or operation under which PATCH or PUT adds instead of declaring.
ADDS_ANYWAY = _words("append children add insert increment send comments items move_")
# Words of a path after a POST to which a repeat changes nothing more.
DECLARES_ANYWAY = _words(
    "cancel disable enable archive unarchive close lock unlock delete remove set update activate "
    "deactivate revoke void pause resume stop mark read restore reopen approve reject accept label "
    "labels upsert tags"
)

# Libraries that change a document in this process; only keeping it is a write.
DOCUMENT_LIBRARIES = (
    "pptx", "docx", "openpyxl", "xlsxwriter", "PIL", "reportlab", "pypdf", "PyPDF2", "fontTools",
    "matplotlib", "fitz", "exceljs", "pptxgenjs", "pdf-lib", "sharp", "jimp", "xlsx", "svgwrite",
    "docxtpl", "odf", "plotly", "seaborn", "cv2",
)  # fmt: skip
KEEPS = _words("save savefig write writefile tofile output imwrite")
HTTP_LIBRARIES = (
    "requests", "httpx", "httpx2", "aiohttp", "urllib3", "urllib", "axios", "got", "node-fetch",
    "undici", "ky", "superagent", "needle", "request", "cross-fetch", "isomorphic-fetch", "reqwest",
    "net/http", "resty", "ureq", "surf", "hyper", "curl_cffi", "http", "https", "java.net.http",
    "okhttp3", "org.springframework.web", "@nestjs/axios", "retryablehttp", "ofetch", "treq",
    "niquests", "aiohttp_retry", "fetch-retry", "@vercel/fetch-retry", "node-fetch-retry",
    "requestretry", "reqwest_middleware", "go-retryablehttp", "resty.dev",
)  # fmt: skip
# Libraries whose calls have no effect outside the process, whatever their verbs.
QUIET_LIBRARIES = (
    "zod", "pydantic", "express", "cors", "dotenv", "winston", "pino", "loguru", "structlog",
    "logging", "commander", "yargs", "chalk", "lodash", "react", "@modelcontextprotocol", "mcp",
    "fastmcp", "rmcp", "zerolog", "logrus", "zap", "cobra", "viper", "serde", "serde_json",
    "tracing", "anyhow", "thiserror", "chrono", "dayjs", "moment", "uuid", "click", "rich", "typer",
    "jsonschema", "ajv", "numpy", "bs4", "cheerio", "turndown", "rxjs", "prom-client",
    "opentelemetry", "go.opentelemetry.io",
    "@opentelemetry", "@sentry", "sentry_sdk", "lru-cache", "cachetools", "p-limit", "p-queue",
    "anyio", "starlette", "fastapi", "uvicorn", "hono", "@hono", "koa", "fastify", "debug", "ora",
    "inquirer",
    "date-fns", "yaml", "toml", "qs", "url", "path", "util", "events", "crypto", "os", "stream",
    "buffer", "zlib", "querystring", "assert", "process", "timers", "node:url", "node:path",
    "node:crypto", "node:util", "node:events", "node:os", "@nestjs/common", "@nestjs/core",
    "marked",
    "mark3labs", "modelcontextprotocol", "std", "core", "alloc", "futures", "base64", "regex",
    "bluemonday", "cache2go", "goquery", "jsdom", "dompurify", "async_hooks", "tough-cookie",
    "fetch-cookie", "tar-stream", "archiver", "keyv", "node-cache",
    "form-data", "cobra", "pflag", "gjson", "decimal", "schemars", "clap", "axum", "tower",
    "markdownify", "html2text", "jinja2", "attr", "attrs", "marshmallow", "zod-to-json-schema",
    "json-schema", "openapi-types", "mime-types", "mime", "semver", "glob", "minimatch", "diff",
    "fast-deep-equal", "thefuzz", "rapidfuzz", "dateutil", "pytz", "pandas", "tabulate", "markdown",
    "errors", "fmt", "strings", "strconv", "time", "context", "sync", "encoding", "log", "bytes",
    "io", "bufio", "math", "sort", "slices", "maps", "reflect", "regexp", "unicode", "hash",
    "@nestjs/swagger", "class-validator", "vscode", "electron", "react-dom", "next", "vue",
    "@segment/analytics-node", "analytics-node", "posthog-node", "posthog", "mixpanel", "amplitude",
    "@amplitude", "@datadog", "dd-trace", "newrelic", "bugsnag", "rollbar",  # they report
    "svelte", "async_hooks", "perf_hooks", "readline", "string_decoder", "tty", "v8", "module",
    "tokio", "tokio_util", "tokio_stream", "futures_util", "async_trait", "async_stream",
    "parking_lot", "once_cell", "lazy_static", "dashmap", "indexmap", "itertools", "rand",
    "serde_yaml", "sha2", "hmac", "hex", "urlencoding", "percent_encoding", "tracing_subscriber",
    "env_logger", "strum", "dirs", "shellexpand", "walkdir", "ignore", "csv", "rayon", "crossbeam",
    "flume", "jsonwebtoken", "minijinja", "tera", "handlebars", "color_eyre", "eyre", "snafu",
    "org.slf4j", "lombok", "javafx", "org.springframework.http", "org.springframework.util",
    "com.fasterxml.jackson", "jakarta.annotation", "org.apache.commons",
    "com.google.gson", "com.google.common", "reactor.core", "io.swagger",
    "bluemonday", "cache2go", "goldmark", "mapstructure", "cast", "golang.org/x", "ristretto",
    "go-cache", "testify", "html-to-markdown", "go-querystring", "backoff/v4", "backoff/v5",
    "governor", "moka", "lru", "prometheus", "rust_decimal", "dotenvy", "dotenv", "figment",
    "rmcp_macros", "bytes", "http_body_util", "tower_http", "secrecy", "zeroize", "arc_swap",
    "tokio_retry", "backoff", "backon", "again",
)  # fmt: skip
SDK_ROOTS = (
    "mcp", "fastmcp", "@modelcontextprotocol/sdk", "@modelcontextprotocol/server",
    "@modelcontextprotocol/core", "github.com/mark3labs/mcp-go", "mark3labs/mcp-go",
    "github.com/modelcontextprotocol/go-sdk", "modelcontextprotocol/go-sdk", "rmcp", "mcp_server",
    "@rekog/mcp-nest", "mcp-framework", "fastmcp-ts", "mcp-handler", "@vercel/mcp-adapter",
    "io.modelcontextprotocol", "org.springframework.ai", "rust-mcp-sdk", "rust_mcp_sdk", "mcp_core",
    "mcp_sdk_rs", "mcp_attr", "metoro-io/mcp-golang", "github.com/metoro-io/mcp-golang",
    "mcpserver",
    "io.quarkiverse.mcp", "org.springaicommunity.mcp", "org.noear.solon.ai.mcp",
    "@nestjs-mcp", "@nestjs/mcp", "agents/mcp", "xmcp", "litemcp",
    "arcade_mcp",
    "muppet", "tmcp", "mcp_use", "turbomcp", "pmcp", "poem_mcpserver",
    "github.com/ThinkInAIXYZ/go-mcp",
)  # fmt: skip
# Names an SDK hands out with everything else (`use rmcp::model::*`).
SDK_TYPES = frozenset({"Tool", "ToolAnnotations", "ListToolsResult", "CallToolResult", "Content"})
# Words of packages that call MCP servers, or test and carry them, but offer no tools.
MCP_CALLERS = _words(
    "client clients adapter adapters agent agents remote inspector proxy sdk test testing auth "
    "evals types schema host langchain config install"
)
AGENT_FRAMEWORKS = (
    "langchain", "langchain_core", "langgraph", "@langchain", "crewai", "crewai_tools", "agents",
    "ai", "@ai-sdk", "@openai/agents", "openai", "strands", "pydantic_ai", "autogen",
    "autogen_core",
    "llama_index", "llamaindex", "semantic_kernel", "smolagents", "google.adk", "haystack", "agno",
    "swiftide", "swiftide_macros", "langchain_rust", "dev.langchain4j",
    "phi", "controlflow", "marvin", "@mastra/core", "genkit", "@genkit-ai", "claude_agent_sdk",
    "@anthropic-ai/claude-agent-sdk", "rig", "dspy", "griptape", "swarm", "composio", "letta",
)  # fmt: skip

SOCKET_LIBRARIES = frozenset({"socket", "net", "ws", "websocket", "websockets", "zmq"})
REDIS_LIBRARIES = (
    "redis", "ioredis", "aioredis", "node-redis", "valkey", "iovalkey",
    "github.com/redis/go-redis",
)  # fmt: skip
REDIS_ADDS = _words(
    "append lpush rpush lpushx rpushx linsert incr incrby incrbyfloat decr decrby hincrby "
    "hincrbyfloat zincrby xadd publish spublish lpop rpop blpop brpop lmove rpoplpush spop "
    "zpopmin zpopmax getdel eval evalsha"
)
REDIS_DECLARES = _words(
    "set setex setnx psetex mset msetnx getset setrange hset hsetnx hmset hdel del delete unlink "
    "expire expireat pexpire persist rename renamenx sadd srem smove zadd zrem lrem lset ltrim "
    "xdel xtrim xack xgroupcreate xgroupdestroy flushdb flushall copy move restore jsonset jsondel "
    "createindex dropindex geoadd pfadd setbit"
)

# Money: the things whose making or changing moves value.
MONEY = _words(
    "payment payments payout payouts transfer transfers order orders charge charges refund refunds "
    "invoice invoices subscription subscriptions checkout purchase purchases trade trades position "
    "positions swap swaps withdraw withdrawal withdrawals deposit deposits settlement settlements "
    "pay buy sell capture billing stake loan locate tip allowance escrow mandate "
    "dispute disputes credit topup pspreference transaction transactions renew"
)
# Records that move value only when they are granted to someone.
GRANTED = _words("coupon coupons voucher vouchers discount promotion giftcard")
GRANTING = _words("apply redeem grant award issue")
# A record about money that moves none.
MONEY_NOT = _words(
    "method methods customer customers product products catalog webhook webhooks note notes "
    "template templates report reports reminder remind label labels tracking shipment shipping "
    "contact "
    "plan plans item items category terms receipt receipts address contacts watchlist metadata "
    "onboarding config configuration notification notifications thread remind qr"
)

# Keys: names of a value by which the far side can tell a repeat from a new action.
KEY_NAMES = (
    ("idempotency",), ("idempotent",), ("idempotence",), ("client", "token"),
    ("client", "request", "token"), ("client", "order", "id"), ("client", "reference"),
    ("client", "transaction", "id"), ("client", "mutation", "id"), ("client", "msg", "id"),
    ("transaction", "id"), ("reference", "id"), ("external", "id"), ("external", "reference"),
    ("external", "subscription", "id"), ("request", "token"), ("dedupe",), ("dedup",),
    ("deduplication",), ("nonce",), ("paypal", "request", "id"), ("operation", "key"),
    ("merchant", "reference"), ("merchant", "order", "id"), ("txn", "id"), ("tx", "ref"),
    ("unique", "key"), ("request", "key"), ("intent", "id"), ("command", "id"), ("client", "id",
    "key"),
)  # fmt: skip
KEY_EXACT = frozenset({"uid", "uuid", "cid", "rid", "nonce", "request_id", "requestid"})
# A request id only correlates logs, unless the wire calls it by a name that deduplicates.
CORRELATION = _words("x correlation trace span log logger session")
UNIQUE_HINT = re.compile(
    r"\b(?:must|should|needs? to|has to|always|make sure)\b[^.!?\n]{0,60}"
    r"\b(?:unique|new|different|fresh)\b"
    r"|\b(?:unique|new|different|fresh)\b[^.!?\n]{0,30}"
    r"\b(?:for each|for every|per|each time|every time)\b",
    re.IGNORECASE,
)
FRESH = frozenset({
    "uuid", "uuid1", "uuid4", "uuid7", "v1", "v4", "v7", "randomuuid", "new_v4", "now_v7", "nanoid",
    "newstring", "ulid", "cuid", "createid", "token_hex", "token_urlsafe", "token_bytes", "randint",
    "randombytes", "random", "getrandomvalues", "randomint", "now", "time", "time_ns", "utcnow",
    "gettime", "timestamp", "unixnano", "unixmilli", "unix", "getrandbits", "choices", "ksuid",
    "newv4", "newrandom", "currenttimemillis", "nanotime", "gettransactioncount", "get_nonce",
    "nonce",
    "noncegetpending", "pendingnonceat", "get_transaction_count", "perf_counter", "monotonic",
    "random_string", "thread_rng", "date", "nanos", "as_millis", "as_nanos", "timestamp_millis",
    "randomstring", "uniqueid", "rand", "secrets", "uuidv4", "uuidv7", "generateuuid",
    "generate_uuid",
})  # fmt: skip
CLOCK = frozenset({
    "now", "time", "time_ns", "utcnow", "gettime", "timestamp", "unixnano", "unixmilli", "unix",
    "currenttimemillis", "nanotime", "date", "nanos", "as_millis", "as_nanos", "timestamp_millis",
    "perf_counter", "monotonic",
})  # fmt: skip
HASHES = _words(
    "sha256 sha1 sha512 md5 hash hmac digest hexdigest sha blake2b uuid5 v5 murmur createhash"
)
RETRY = _words(
    "retry retries retrying attempt attempts backoff retryable tenacity resend tries stamina"
)
RETRY_NOT = _words("after limit no not without disable")
# Words of options that say how, not whether: `retry_delay`, `onRetry`, `retryStatusCodes`.
RETRY_ASIDE = _words(
    "delay wait interval on status statuses codes code backoff factor timeout max_time"
)
STORES = _words(
    "seen processed dedup dedupe idempotency existing already completed cache ledger store handled "
    "sent executed known recorded keys"
)

# Child processes: words of a command line.
COMMAND_READS = _words(
    "get list ls describe logs status show version view top explain api-resources info inspect ps "
    "images history search audit outdated diff log config whoami cat head tail which env help "
    "check lint dry-run template events cluster-info can-i rev-parse branch remote blame grep find "
    "ping nslookup dig curl stat df du free uptime date hostname uname file wc ffprobe "
    "current-context "
    "get-contexts screenshot"
)
COMMAND_WRITES = _words(
    "apply create delete scale patch rollout install upgrade uninstall exec run push commit cordon "
    "drain uncordon taint label annotate edit replace set add remove rm mv cp mkdir touch kill "
    "start "
    "stop restart build publish deploy send write put post checkout merge rebase reset tag init "
    "clone "
    "pull up down reboot shutdown import export load save rename move use-context set-context "
    "expose "
    "undo restart pause resume port-forward unlink chmod chown sed tee say afplay open osascript"
)
# First words of a command that only name what the next one is about.
COMMAND_GROUPS = _words("config remote rollout repo context stash")
SHELLS = _words("sh bash zsh cmd powershell pwsh osascript python node")
# Functions that obtain, renew or drop a credential: what they send changes nothing for the caller.
AUTHENTICATES = _words(
    "auth authenticate authenticated authentication authorize oauth token tokens login credential "
    "credentials jwt refreshtoken accesstoken relogin reauthenticate reauth"
)
REPORTS = _words("telemetry analytics metrics logging logger log tracker tracing debug")
TEMPORARY = _words("tmp temp temporary cache caches log logs debug")


def verb_of(name: str) -> str:
    """Classify a name by its first verb: adding, declaring, reading, or nothing."""
    for word in split(name)[:4]:
        if word in LEADING and word != "batch":
            continue
        if word in DECLARING:
            return "declaring"
        if word in ADDING:
            return "adding"
        if word in READING:
            return "reading"
    return ""


def writes_by_name(name: str) -> bool:
    """Tell whether a tool's name says that it writes."""
    words = split(name)
    if words[-1:] and words[-1] in STRICT_READ and not set(words[:-1]) & (ACTING - NOUNS):
        return False  # `comment_get`, `task_label_list`
    verbs = [w for w in words[:4] if w not in LEADING] or list(words[:3])
    for word in verbs[:3]:
        if word in STRICT_READ:
            return False
        if word in ADDING or word in DECLARING:
            return word not in READING
    return bool(set(words[:1]) & {"bulk", "batch"})


def reads_by_name(name: str) -> bool:
    """Tell whether a name's first verb only asks."""
    for word in split(name)[:3]:
        if word in STRICT_READ or word in QUERYING:
            return True
        if word in ADDING or word in DECLARING:
            return False
    return False


def only_carries(name: str) -> bool:
    """Tell whether a name is one of the transport's, whatever is asked: `fetchFromApi`."""
    named = set(split(name))
    return bool(named) and named <= CARRIED | CARRIERS


@functools.lru_cache(maxsize=5000)
def key_like(name: str) -> bool:
    """Tell whether a name is one by which a repeat could be recognised."""
    words = split(name)
    if not words or len(words) > 6:
        return False
    if "".join(words) in KEY_EXACT or name.lower() in KEY_EXACT:
        return True
    for key in KEY_NAMES:
        size = len(key)
        for start in range(len(words) - size + 1):
            if words[start : start + size] == key:
                return len(words) - size <= 3 or size == 1
    joined = "".join(words)
    return joined in ("idempotencykey", "clientorderid", "clienttoken", "externalid", "referenceid")


def about_money(text: str) -> bool:
    """Tell whether a path or name is about something whose change moves value."""
    words = set(split(text))
    if words & GRANTED and words & GRANTING:
        return True
    return bool(words & MONEY) and not words & MONEY_NOT


HTTP_VERBS_UPPER = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
