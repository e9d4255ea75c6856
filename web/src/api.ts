/** Requests to the server that the page came from: the token, errors as one class, and who hears of a rejected token. */

import { parseExact } from "./exact.js";
import { setServerNow } from "./format.js";
import type { ServerStatus } from "./model.js";

export type Query = Record<string, string | number | boolean | undefined>;

/** A reply that is no success, or none at all (`unreachable`). */
export class ApiError extends Error {
  constructor(readonly code: string, message: string, readonly status: number) {
    super(message);
  }
}

const KEPT_TOKEN = "prombus.token";
const ABOUT_TOKEN = new Set(["unauthorized", "bad_token", "token_expired"]);

let token = readKept();
let onRejected: (error: ApiError) => void = () => undefined;

/** The token in use. */
export function currentToken(): string | undefined {
  return token;
}

/** From now on this token is shown; it outlives a reload of the tab only where `keep` says so. */
export function useToken(value: string | undefined, keep: boolean): void {
  token = value || undefined;
  try {
    if (token && keep) sessionStorage.setItem(KEPT_TOKEN, token);
    else sessionStorage.removeItem(KEPT_TOKEN);
  } catch {
    // Storage may be switched off; then the token is kept in memory alone.
  }
}

/** Who is told when the server does not take the token. */
export function whenRejected(listener: (error: ApiError) => void): void {
  onRejected = listener;
}

export function get<R>(path: string, query: Query = {}, signal?: AbortSignal): Promise<R> {
  return request<R>("GET", path, query, undefined, signal);
}

export function send<R>(method: string, path: string, body?: unknown, query: Query = {}): Promise<R> {
  return request<R>(method, path, query, body === undefined ? undefined : JSON.stringify(body));
}

/** The status, which also tells the server's clock. */
export async function serverStatus(signal?: AbortSignal): Promise<ServerStatus> {
  const status = await get<ServerStatus>("/status", {}, signal);
  setServerNow(status.now_ms);
  return status;
}

/** A response whatever its status; only a server that cannot be reached is an error. */
export async function raw(method: string, path: string, query: Query = {}, body?: string, headers: Record<string, string> = {}, signal?: AbortSignal): Promise<Response> {
  if (token) headers = { ...headers, authorization: `Bearer ${token}` };
  const init: RequestInit = { method, headers, cache: "no-store" };
  if (body !== undefined) init.body = body;
  if (signal) init.signal = signal;
  try {
    return await fetch(path + queryText(query), init);
  } catch (error) {
    signal?.throwIfAborted();
    throw new ApiError("unreachable", "The server cannot be reached.", 0);
  }
}

/** A response of success. */
export async function stream(path: string, query: Query, signal: AbortSignal): Promise<Response> {
  return checked(await raw("GET", path, query, undefined, {}, signal));
}

export function queryText(query: Query): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined && value !== "") parameters.set(name, String(value));
  const text = parameters.toString();
  return text ? `?${text}` : "";
}

/** A path with a name in it. */
export function segment(name: string): string {
  return encodeURIComponent(name);
}

async function request<R>(method: string, path: string, query: Query, body?: string, signal?: AbortSignal): Promise<R> {
  const headers: Record<string, string> = body === undefined ? {} : { "content-type": "application/json" };
  const response = await checked(await raw(method, path, query, body, headers, signal));
  if (response.status === 204) return undefined as R;
  return parseExact(await response.text()) as R;
}

async function checked(response: Response): Promise<Response> {
  if (response.ok) return response;
  const body = (await response.json().catch(() => ({}))) as { code?: string; error?: string };
  const error = new ApiError(body.code ?? "unknown", body.error ?? `HTTP status ${response.status}`, response.status);
  if (ABOUT_TOKEN.has(error.code)) onRejected(error);
  throw error;
}

function readKept(): string | undefined {
  try {
    return sessionStorage.getItem(KEPT_TOKEN) ?? undefined;
  } catch {
    return undefined;
  }
}
