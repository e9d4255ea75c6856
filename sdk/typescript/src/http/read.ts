/** Stored events: `/replay` in pages and `/export` as a stream. */

import { messageOf, PrombusError, UnreachableError } from "../errors.js";
import type { EventRecord, StartOptions } from "../record.js";
import { backoffMs, sleep } from "../timers.js";
import type { HttpTransport } from "../transport/http.js";

export interface ReplayOptions extends StartOptions {
  /** Events of one request (1,000; at most 10,000). */
  pageSize?: number;
  /** The most events in all. */
  limit?: number;
  /** Events of earlier versions of the topic's schema come as ones of the latest. */
  upcast?: boolean;
  signal?: AbortSignal;
}

export interface ExportOptions {
  /** Epoch milliseconds, inclusive. */
  fromTs?: number;
  /** Epoch milliseconds, inclusive. */
  toTs?: number;
  /** Only what comes after this event in the export's order. */
  afterId?: string;
  /** Only events with this key. */
  key?: string;
  /** Events of earlier versions of the topic's schema come as ones of the latest. */
  upcast?: boolean;
  signal?: AbortSignal;
}

interface Page<T> {
  events: EventRecord<T>[];
  next: number | null;
}

const DEFAULT_PAGE = 1_000;
/** How often an export that breaks goes on without having brought anything in between. */
const MAX_STALLS = 5;
/** The longest line of an export; a record is much smaller. */
const MAX_LINE_CHARS = 64 << 20;

/** Events of a topic in their order, up to those that are stored when the end is reached. */
export async function* replay<T>(http: HttpTransport, topic: string, options: ReplayOptions): AsyncGenerator<EventRecord<T>, void, undefined> {
  const { from = "earliest", ts, afterId, seq, pageSize = DEFAULT_PAGE, limit = Infinity, upcast, signal } = options;
  let start: Record<string, string | number | undefined> = { from, ts, afterId, seq };
  for (let left = limit; left > 0; ) {
    const query = { topic, ...start, limit: Math.min(pageSize, left), upcast: upcast ? 1 : undefined };
    const page: Page<T> = await http.json<Page<T>>({ path: "/replay", query, signal });
    yield* page.events;
    left -= page.events.length;
    if (page.next === null || page.events.length === 0) return;
    start = { from: "seq", seq: page.next };
  }
}

/** Every event of a time, by ts then seq. A stream that breaks goes on behind the last event that came. */
export async function* exportEvents<T>(http: HttpTransport, topic: string, options: ExportOptions): AsyncGenerator<EventRecord<T>, void, undefined> {
  const { signal, upcast, ...range } = options;
  let { afterId } = options;
  for (let stalls = 0; ; stalls += 1) {
    try {
      for await (const line of lines(http, { topic, ...range, afterId, ndjson: 1, upcast: upcast ? 1 : undefined }, signal)) {
        const event = JSON.parse(line) as EventRecord<T>;
        yield event;
        afterId = event.id;
        stalls = 0;
      }
      return;
    } catch (error) {
      signal?.throwIfAborted();
      if (!(error instanceof PrombusError && error.retryable) || stalls >= MAX_STALLS) throw error;
      await sleep(backoffMs(100, 3_000, stalls + 1, Math.random()), signal);
    }
  }
}

/** The lines of an export. Leaving the loop ends the request. */
async function* lines(http: HttpTransport, query: Record<string, string | number | undefined>, signal: AbortSignal | undefined): AsyncGenerator<string> {
  const response = await http.send({ path: "/export", query, signal });
  const reader = response.body?.getReader();
  if (!reader) return;
  const decoder = new TextDecoder();
  let text = "";
  try {
    for (;;) {
      const { done, value } = await read(reader);
      text += done ? decoder.decode() : decoder.decode(value, { stream: true });
      const parts = text.split("\n");
      text = parts.pop() ?? "";
      for (const line of parts) if (line) yield line;
      if (text.length > MAX_LINE_CHARS) throw new UnreachableError("unreachable", "the export broke: a line is too long");
      if (done) break;
    }
    if (text) yield text;
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

async function read(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<{ done: boolean; value?: Uint8Array | undefined }> {
  try {
    return await reader.read();
  } catch (cause) {
    throw new UnreachableError("unreachable", `the export broke: ${messageOf(cause)}`, { cause });
  }
}
