import { PrombusError } from "../errors.js";
export async function getCursor(http, topic, group, signal) {
    try {
        const { cursors } = await http.json({ path: "/cursors", query: { topic }, signal });
        const found = cursors.find((cursor) => cursor.group === group);
        if (!found)
            return null;
        const { group: _group, ...cursor } = found;
        return cursor;
    }
    catch (error) {
        if (error instanceof PrombusError && error.code === "unknown_topic")
            return null;
        throw error;
    }
}
export async function seek(http, topic, group, to, signal) {
    const { dryRun, ...position } = to;
    return http.json({ method: "POST", path: "/cursors", body: { topic, group, ...position, dry_run: dryRun }, signal });
}
export function positionBehind(cursor) {
    if (cursor.lastSeq !== undefined)
        return { from: "seq", seq: cursor.lastSeq + 1 };
    if (cursor.lastId !== undefined)
        return { from: "afterId", afterId: cursor.lastId };
    if (cursor.lastTs !== undefined)
        return { from: "ts", ts: cursor.lastTs + 1 };
    return { from: "earliest" };
}
export function settle(http, path, body) {
    return http.json({ method: "POST", path, body });
}
