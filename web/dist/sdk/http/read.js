import { messageOf, PrombusError, UnreachableError } from "../errors.js";
import { backoffMs, sleep } from "../timers.js";
const DEFAULT_PAGE = 1_000;
const MAX_STALLS = 5;
const MAX_LINE_CHARS = 64 << 20;
export async function* replay(http, topic, options) {
    const { from = "earliest", ts, afterId, seq, pageSize = DEFAULT_PAGE, limit = Infinity, upcast, signal } = options;
    let start = { from, ts, afterId, seq };
    for (let left = limit; left > 0;) {
        const query = { topic, ...start, limit: Math.min(pageSize, left), upcast: upcast ? 1 : undefined };
        const page = await http.json({ path: "/replay", query, signal });
        yield* page.events;
        left -= page.events.length;
        if (page.next === null || page.events.length === 0)
            return;
        start = { from: "seq", seq: page.next };
    }
}
export async function* exportEvents(http, topic, options) {
    const { signal, upcast, ...range } = options;
    let { afterId } = options;
    for (let stalls = 0;; stalls += 1) {
        try {
            for await (const line of lines(http, { topic, ...range, afterId, ndjson: 1, upcast: upcast ? 1 : undefined }, signal)) {
                const event = JSON.parse(line);
                yield event;
                afterId = event.id;
                stalls = 0;
            }
            return;
        }
        catch (error) {
            signal?.throwIfAborted();
            if (!(error instanceof PrombusError && error.retryable) || stalls >= MAX_STALLS)
                throw error;
            await sleep(backoffMs(100, 3_000, stalls + 1, Math.random()), signal);
        }
    }
}
async function* lines(http, query, signal) {
    const response = await http.send({ path: "/export", query, signal });
    const reader = response.body?.getReader();
    if (!reader)
        return;
    const decoder = new TextDecoder();
    let text = "";
    try {
        for (;;) {
            const { done, value } = await read(reader);
            text += done ? decoder.decode() : decoder.decode(value, { stream: true });
            const parts = text.split("\n");
            text = parts.pop() ?? "";
            for (const line of parts)
                if (line)
                    yield line;
            if (text.length > MAX_LINE_CHARS)
                throw new UnreachableError("unreachable", "the export broke: a line is too long");
            if (done)
                break;
        }
        if (text)
            yield text;
    }
    finally {
        await reader.cancel().catch(() => undefined);
    }
}
async function read(reader) {
    try {
        return await reader.read();
    }
    catch (cause) {
        throw new UnreachableError("unreachable", `the export broke: ${messageOf(cause)}`, { cause });
    }
}
