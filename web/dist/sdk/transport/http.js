import { errorFor, messageOf, PrombusError, UnreachableError } from "../errors.js";
import { backoffMs, sleep } from "../timers.js";
const MAX_READ_ATTEMPTS = 6;
const RETRY_BASE_MS = 100;
const RETRY_CAP_MS = 3_000;
export class HttpTransport {
    #link;
    constructor(link) {
        this.#link = link;
    }
    async json(request) {
        const response = await this.send(request);
        try {
            return (await response.json());
        }
        catch (cause) {
            request.signal?.throwIfAborted();
            throw new UnreachableError("unreachable", `${request.path}: ${messageOf(cause)}`, { cause });
        }
    }
    async send(request) {
        const isRead = (request.method ?? "GET") === "GET";
        for (let attempt = 1;; attempt += 1) {
            try {
                return await this.#sendOnce(request);
            }
            catch (error) {
                request.signal?.throwIfAborted();
                const isPassing = error instanceof PrombusError && error.retryable;
                if (!isRead || !isPassing || attempt >= MAX_READ_ATTEMPTS)
                    throw error;
                const pauseMs = backoffMs(RETRY_BASE_MS, RETRY_CAP_MS, attempt, Math.random());
                await sleep(Math.max(pauseMs, error.retryAfterMs ?? 0), request.signal);
            }
        }
    }
    async #sendOnce({ method = "GET", path, query, body, signal }) {
        if (this.#link.ended)
            throw this.#link.ended;
        const { httpUrl, fetch } = this.#link.settings;
        const token = await this.#link.currentToken();
        const headers = {};
        if (token !== undefined)
            headers["authorization"] = `Bearer ${token}`;
        if (body !== undefined)
            headers["content-type"] = "application/json";
        const init = { method, headers };
        if (body !== undefined)
            init.body = JSON.stringify(body);
        if (signal)
            init.signal = signal;
        let response;
        try {
            response = await fetch(httpUrl + path + queryText(query), init);
        }
        catch (cause) {
            signal?.throwIfAborted();
            throw new UnreachableError("unreachable", `${httpUrl}${path}: ${messageOf(cause)}`, { cause });
        }
        if (!response.ok)
            throw await errorOfResponse(response);
        return response;
    }
}
export function pathText(text) {
    return encodeURIComponent(text);
}
function queryText(query) {
    const parameters = new URLSearchParams();
    for (const [name, value] of Object.entries(query ?? {})) {
        if (Array.isArray(value))
            for (const each of value)
                parameters.append(name, each);
        else if (value !== undefined)
            parameters.append(name, String(value));
    }
    const text = parameters.toString();
    return text ? `?${text}` : "";
}
async function errorOfResponse(response) {
    const body = (await response.json().catch(() => ({})));
    const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
    const retryAfterMs = body.retry_after_ms ?? (Number.isFinite(seconds) ? seconds * 1000 : undefined);
    const fallback = response.status >= 500 ? "unreachable" : "protocol_error";
    return errorFor(body.code ?? fallback, body.error ?? `HTTP status ${response.status}`, { retryAfterMs, actual: body.actual });
}
