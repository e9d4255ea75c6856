import { ApiError, serverStatus, stream } from "./api.js";
import { setServerNow } from "./format.js";
const MAX_SAMPLES = 450;
const POLL_MS = 5_000;
const RETRY_MS = [500, 1_000, 2_000, 3_000];
export const history = empty();
let connection = "connecting";
let running;
const connectionListeners = new Set();
const tickListeners = new Set();
export function onConnection(listener) {
    connectionListeners.add(listener);
}
export function onTick(listener) {
    tickListeners.add(listener);
    return () => tickListeners.delete(listener);
}
export function currentConnection() {
    return connection;
}
export function start() {
    document.addEventListener("visibilitychange", restart);
    restart();
}
export function restart() {
    running?.abort();
    if (document.hidden)
        return setConnection("hidden");
    running = new AbortController();
    void follow(running.signal);
}
async function follow(signal) {
    for (let failures = 0; !signal.aborted;) {
        try {
            await followOnce(signal, () => (failures = 0));
        }
        catch (error) {
            if (signal.aborted)
                return;
            if (error instanceof ApiError && error.status === 401)
                return setConnection("rejected");
            if (error instanceof ApiError && error.code === "forbidden")
                return poll(signal);
        }
        if (signal.aborted)
            return;
        setConnection("lost");
        await sleep(RETRY_MS[Math.min(failures, RETRY_MS.length - 1)] ?? 1_000, signal);
        failures += 1;
    }
}
async function followOnce(signal, onMessage) {
    const after = history.ts.at(-1);
    const response = await stream("/history", { follow: 1, after }, signal);
    const reader = response.body?.getReader();
    if (!reader)
        return;
    const decoder = new TextDecoder();
    for (let text = "";;) {
        const { done, value } = await reader.read();
        if (done)
            return;
        text += decoder.decode(value, { stream: true });
        const messages = text.split("\n\n");
        text = messages.pop() ?? "";
        for (const message of messages) {
            if (!message.startsWith("data: "))
                continue;
            take(JSON.parse(message.slice(6)));
            onMessage();
            setConnection("connected");
            for (const listener of tickListeners)
                listener();
        }
    }
}
async function poll(signal) {
    while (!signal.aborted) {
        try {
            await serverStatus(signal);
            setConnection("connected");
            for (const listener of tickListeners)
                listener();
        }
        catch (error) {
            if (signal.aborted)
                return;
            if (error instanceof ApiError && error.status === 401)
                return setConnection("rejected");
            setConnection("lost");
        }
        await sleep(POLL_MS, signal);
    }
}
function take(page) {
    setServerNow(page.now_ms);
    history.now_ms = page.now_ms;
    history.interval_ms = page.interval_ms;
    const lists = history;
    for (const [name, values] of Object.entries(page)) {
        const list = lists[name];
        if (!Array.isArray(values) || !list)
            continue;
        list.push(...values);
        list.splice(0, Math.max(0, list.length - MAX_SAMPLES));
    }
}
function setConnection(next) {
    if (next === connection)
        return;
    connection = next;
    for (const listener of connectionListeners)
        listener(next);
}
function sleep(ms, signal) {
    return new Promise((resolve) => {
        const timer = setTimeout(resolve, ms);
        signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
    });
}
function empty() {
    return {
        now_ms: 0, interval_ms: 2_000, ts: [], published: [], delivered: [], acked: [], nacked: [], redelivered: [], dead_lettered: [],
        rate_limited: [], fsyncs: [], fsync_p50_us: [], fsync_p99_us: [], connections: [], store_bytes: [], lag: [],
    };
}
