import { parseExact } from "./exact.js";
import { setServerNow } from "./format.js";
export class ApiError extends Error {
    code;
    status;
    constructor(code, message, status) {
        super(message);
        this.code = code;
        this.status = status;
    }
}
const KEPT_TOKEN = "prombus.token";
const ABOUT_TOKEN = new Set(["unauthorized", "bad_token", "token_expired"]);
let token = readKept();
let onRejected = () => undefined;
export function currentToken() {
    return token;
}
export function useToken(value, keep) {
    token = value || undefined;
    try {
        if (token && keep)
            sessionStorage.setItem(KEPT_TOKEN, token);
        else
            sessionStorage.removeItem(KEPT_TOKEN);
    }
    catch {
    }
}
export function whenRejected(listener) {
    onRejected = listener;
}
export function get(path, query = {}, signal) {
    return request("GET", path, query, undefined, signal);
}
export function send(method, path, body, query = {}) {
    return request(method, path, query, body === undefined ? undefined : JSON.stringify(body));
}
export async function serverStatus(signal) {
    const status = await get("/status", {}, signal);
    setServerNow(status.now_ms);
    return status;
}
export async function raw(method, path, query = {}, body, headers = {}, signal) {
    if (token)
        headers = { ...headers, authorization: `Bearer ${token}` };
    const init = { method, headers, cache: "no-store" };
    if (body !== undefined)
        init.body = body;
    if (signal)
        init.signal = signal;
    try {
        return await fetch(path + queryText(query), init);
    }
    catch (error) {
        signal?.throwIfAborted();
        throw new ApiError("unreachable", "The server cannot be reached.", 0);
    }
}
export async function stream(path, query, signal) {
    return checked(await raw("GET", path, query, undefined, {}, signal));
}
export function queryText(query) {
    const parameters = new URLSearchParams();
    for (const [name, value] of Object.entries(query))
        if (value !== undefined && value !== "")
            parameters.set(name, String(value));
    const text = parameters.toString();
    return text ? `?${text}` : "";
}
export function segment(name) {
    return encodeURIComponent(name);
}
async function request(method, path, query, body, signal) {
    const headers = body === undefined ? {} : { "content-type": "application/json" };
    const response = await checked(await raw(method, path, query, body, headers, signal));
    if (response.status === 204)
        return undefined;
    return parseExact(await response.text());
}
async function checked(response) {
    if (response.ok)
        return response;
    const body = (await response.json().catch(() => ({})));
    const error = new ApiError(body.code ?? "unknown", body.error ?? `HTTP status ${response.status}`, response.status);
    if (ABOUT_TOKEN.has(error.code))
        onRejected(error);
    throw error;
}
function readKept() {
    try {
        return sessionStorage.getItem(KEPT_TOKEN) ?? undefined;
    }
    catch {
        return undefined;
    }
}
