import { BadJsonError, messageOf } from "../errors.js";
export function wireOptions(options, id, headers) {
    const { ts, key, tags, caused_by, sid, expect_seq, expect_key_seq, deliver_at, delay_ms, every, catch_up, also_publish } = options;
    const later = { deliver_at, delay_ms, every, catch_up, also_publish };
    return { id, ts, key, headers, tags, caused_by, sid, expect_seq, expect_key_seq, ...later };
}
export function encodePayload(payload) {
    let text;
    try {
        text = JSON.stringify(payload);
    }
    catch (cause) {
        throw new BadJsonError("bad_json", `the payload is not JSON: ${messageOf(cause)}`, { cause });
    }
    if (text === undefined)
        throw new BadJsonError("bad_json", `the payload is not JSON: it is ${typeof payload}`);
    return text;
}
export class PublishEncoder {
    #lastTopic;
    #lastHead = "";
    encode(topic, payload, options, id) {
        if (topic !== this.#lastTopic) {
            this.#lastHead = `{"op":"PUBLISH","topic":${JSON.stringify(topic)},"payload":`;
            this.#lastTopic = topic;
        }
        const head = this.#lastHead + payload;
        if (options)
            return `${head},"opts":${JSON.stringify(options)}`;
        return id === undefined ? head : `${head},"opts":{"id":"${id}"}`;
    }
}
export function storedRecord(topic, payload, options, receipt) {
    const { id, seq } = receipt;
    const ts = receipt.ts ?? options?.ts ?? Date.now();
    if (!options)
        return receipt.duplicate ? { id, ts, topic, seq, payload, duplicate: true } : { id, ts, topic, seq, payload };
    const { sid, key, headers, caused_by, tags } = options;
    const record = { id, ts, topic, seq, payload };
    if (sid !== undefined)
        record.sid = sid;
    if (key !== undefined)
        record.key = key;
    if (headers !== undefined)
        record.headers = headers;
    if (caused_by !== undefined)
        record.caused_by = caused_by;
    if (tags !== undefined)
        record.tags = tags;
    if (receipt.due !== undefined)
        record.due = receipt.due;
    if (receipt.duplicate)
        record.duplicate = true;
    return record;
}
export function stepEvents(events, traced) {
    return events.map(({ topic, payload, opts = {} }) => {
        const headers = traced ? { ...traced, ...opts.headers } : opts.headers;
        return { topic, payload, opts: wireOptions(opts, opts.id, headers) };
    });
}
export function stepRecords(events, receipts = []) {
    return events.flatMap(({ topic, payload, opts }, at) => {
        const receipt = receipts[at];
        return receipt ? [storedRecord(topic, payload, opts, receipt)] : [];
    });
}
