export function contextOf({ topic, id, ts, seq }, attempt, maxAttempts) {
    return { attempt, maxAttempts, cursor: { topic, lastId: id, lastTs: ts, lastSeq: seq } };
}
