/** The server as it goes on: samples of its history as they are taken, and whether it can be reached. */

import { ApiError, serverStatus, stream } from "./api.js";
import { setServerNow } from "./format.js";
import type { HistoryPage } from "./model.js";

/** `hidden`: the tab is in the background, and nothing is asked for. */
export type Connection = "connecting" | "connected" | "lost" | "hidden" | "rejected";

type Listener = (connection: Connection) => void;

/** Samples that are kept, as many as the server has. */
const MAX_SAMPLES = 450;
/** How often the server is asked where the token does not show the history. */
const POLL_MS = 5_000;
const RETRY_MS = [500, 1_000, 2_000, 3_000];

/** What is known of the last minutes; grows in place. */
export const history: HistoryPage = empty();

let connection: Connection = "connecting";
let running: AbortController | undefined;
const connectionListeners = new Set<Listener>();
const tickListeners = new Set<() => void>();

export function onConnection(listener: Listener): void {
  connectionListeners.add(listener);
}

/** Calls back with every sample; the result stops that. */
export function onTick(listener: () => void): () => void {
  tickListeners.add(listener);
  return () => tickListeners.delete(listener);
}

export function currentConnection(): Connection {
  return connection;
}

/** Starts following, now and whenever the tab comes to the front. */
export function start(): void {
  document.addEventListener("visibilitychange", restart);
  restart();
}

/** Begins anew, for example with another token. */
export function restart(): void {
  running?.abort();
  if (document.hidden) return setConnection("hidden");
  running = new AbortController();
  void follow(running.signal);
}

async function follow(signal: AbortSignal): Promise<void> {
  for (let failures = 0; !signal.aborted; ) {
    try {
      await followOnce(signal, () => (failures = 0));
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiError && error.status === 401) return setConnection("rejected");
      if (error instanceof ApiError && error.code === "forbidden") return poll(signal);
    }
    if (signal.aborted) return;
    setConnection("lost");
    await sleep(RETRY_MS[Math.min(failures, RETRY_MS.length - 1)] ?? 1_000, signal);
    failures += 1;
  }
}

async function followOnce(signal: AbortSignal, onMessage: () => void): Promise<void> {
  const after = history.ts.at(-1);
  const response = await stream("/history", { follow: 1, after }, signal);
  const reader = response.body?.getReader();
  if (!reader) return;
  const decoder = new TextDecoder();
  for (let text = ""; ; ) {
    const { done, value } = await reader.read();
    if (done) return;
    text += decoder.decode(value, { stream: true });
    const messages = text.split("\n\n");
    text = messages.pop() ?? "";
    for (const message of messages) {
      if (!message.startsWith("data: ")) continue;
      take(JSON.parse(message.slice(6)) as HistoryPage);
      onMessage();
      setConnection("connected");
      for (const listener of tickListeners) listener();
    }
  }
}

/** Where the token does not allow the history, the server is asked now and then whether it is there. */
async function poll(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      await serverStatus(signal);
      setConnection("connected");
      for (const listener of tickListeners) listener();
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiError && error.status === 401) return setConnection("rejected");
      setConnection("lost");
    }
    await sleep(POLL_MS, signal);
  }
}

/** Adds samples. Those of a server that was started anew follow those of the old one. */
function take(page: HistoryPage): void {
  setServerNow(page.now_ms);
  history.now_ms = page.now_ms;
  history.interval_ms = page.interval_ms;
  const lists = history as unknown as Record<string, number[]>;
  for (const [name, values] of Object.entries(page)) {
    const list = lists[name];
    if (!Array.isArray(values) || !list) continue;
    list.push(...(values as number[]));
    list.splice(0, Math.max(0, list.length - MAX_SAMPLES));
  }
}

function setConnection(next: Connection): void {
  if (next === connection) return;
  connection = next;
  for (const listener of connectionListeners) listener(next);
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}

function empty(): HistoryPage {
  return {
    now_ms: 0, interval_ms: 2_000, ts: [], published: [], delivered: [], acked: [], nacked: [], redelivered: [], dead_lettered: [],
    rate_limited: [], fsyncs: [], fsync_p50_us: [], fsync_p99_us: [], connections: [], store_bytes: [], lag: [],
  };
}
