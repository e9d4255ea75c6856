/** HTTP requests: the token, errors as classes, and a second try for what only reads. */

import { errorFor, messageOf, PrombusError, UnreachableError } from "../errors.js";
import type { Link } from "../link/link.js";
import { backoffMs, sleep } from "../timers.js";

export type Query = Record<string, string | number | boolean | readonly string[] | undefined>;

export interface HttpRequest {
  method?: "GET" | "POST" | "PUT" | "DELETE";
  path: string;
  query?: Query;
  body?: unknown;
  signal?: AbortSignal | undefined;
}

/** How often a request that only reads is tried when the server cannot be reached or asks to come again. */
const MAX_READ_ATTEMPTS = 6;
const RETRY_BASE_MS = 100;
const RETRY_CAP_MS = 3_000;

export class HttpTransport {
  readonly #link: Link;

  constructor(link: Link) {
    this.#link = link;
  }

  /** The reply of a request as JSON. */
  async json<R>(request: HttpRequest): Promise<R> {
    const response = await this.send(request);
    try {
      return (await response.json()) as R;
    } catch (cause) {
      request.signal?.throwIfAborted();
      throw new UnreachableError("unreachable", `${request.path}: ${messageOf(cause)}`, { cause });
    }
  }

  /** A response with a status that means success. */
  async send(request: HttpRequest): Promise<Response> {
    const isRead = (request.method ?? "GET") === "GET";
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#sendOnce(request);
      } catch (error) {
        request.signal?.throwIfAborted();
        const isPassing = error instanceof PrombusError && error.retryable;
        if (!isRead || !isPassing || attempt >= MAX_READ_ATTEMPTS) throw error;
        const pauseMs = backoffMs(RETRY_BASE_MS, RETRY_CAP_MS, attempt, Math.random());
        await sleep(Math.max(pauseMs, error.retryAfterMs ?? 0), request.signal);
      }
    }
  }

  async #sendOnce({ method = "GET", path, query, body, signal }: HttpRequest): Promise<Response> {
    if (this.#link.ended) throw this.#link.ended;
    const { httpUrl, fetch } = this.#link.settings;
    const token = await this.#link.currentToken();
    const headers: Record<string, string> = {};
    if (token !== undefined) headers["authorization"] = `Bearer ${token}`;
    if (body !== undefined) headers["content-type"] = "application/json";
    const init: RequestInit = { method, headers };
    if (body !== undefined) init.body = JSON.stringify(body);
    if (signal) init.signal = signal;
    let response: Response;
    try {
      response = await fetch(httpUrl + path + queryText(query), init);
    } catch (cause) {
      signal?.throwIfAborted();
      throw new UnreachableError("unreachable", `${httpUrl}${path}: ${messageOf(cause)}`, { cause });
    }
    if (!response.ok) throw await errorOfResponse(response);
    return response;
  }
}

/** A path segment, or several where it contains slashes, percent-encoded. */
export function pathText(text: string): string {
  return encodeURIComponent(text);
}

function queryText(query: Query | undefined): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (Array.isArray(value)) for (const each of value as readonly string[]) parameters.append(name, each);
    else if (value !== undefined) parameters.append(name, String(value));
  }
  const text = parameters.toString();
  return text ? `?${text}` : "";
}

async function errorOfResponse(response: Response): Promise<PrombusError> {
  const body = (await response.json().catch(() => ({}))) as { code?: string; error?: string; retry_after_ms?: number; actual?: number };
  const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
  const retryAfterMs = body.retry_after_ms ?? (Number.isFinite(seconds) ? seconds * 1000 : undefined);
  const fallback = response.status >= 500 ? "unreachable" : "protocol_error";
  return errorFor(body.code ?? fallback, body.error ?? `HTTP status ${response.status}`, { retryAfterMs, actual: body.actual });
}
