import { PrombusError } from "../errors.js";
import { pathText } from "../transport/http.js";
const KEYS_A_REQUEST = 100;
export async function latestByKey(http, topic, keys, signal) {
    const found = new Map();
    for (let at = 0; at < keys.length; at += KEYS_A_REQUEST) {
        const query = { topic, key: keys.slice(at, at + KEYS_A_REQUEST) };
        const { events } = await http.json({ path: "/latest-by-key", query, signal });
        for (const event of events)
            if (event.key !== undefined)
                found.set(event.key, event);
    }
    return found;
}
export async function* latestEvents(http, topic, options) {
    const { prefix, signal } = options;
    let after;
    do {
        const page = await http.json({ path: "/latest-by-key", query: { topic, prefix, after }, signal });
        yield* page.events;
        after = page.next ?? undefined;
    } while (after !== undefined);
}
export async function stateAt(http, topic, key, at, signal) {
    let response;
    try {
        response = await http.send({ path: `/snap/${pathText(topic)}/${pathText(key)}`, query: { at }, signal });
    }
    catch (error) {
        if (error instanceof PrombusError && (error.code === "unknown_key" || error.code === "deleted_key"))
            return undefined;
        throw error;
    }
    const number = (name) => Number(response.headers.get(name));
    const id = response.headers.get("x-event-id");
    const state = { key, payload: (await response.json()), ts: number("x-event-ts"), seq: number("x-event-seq") };
    return id === null ? state : { ...state, id };
}
export async function list(http, topic, options) {
    const { where = {}, signal, ...rest } = options;
    const fields = Object.fromEntries(Object.entries(where).map(([path, value]) => [`payload.${path}`, value]));
    return http.json({ path: `/list/${pathText(topic)}`, query: { ...rest, ...fields }, signal });
}
