/** Groups over HTTP: cursors, and acknowledging without a socket. */

import { PrombusError } from "../errors.js";
import type { CursorPosition, StartOptions } from "../record.js";
import type { HttpTransport } from "../transport/http.js";

/** What setting a cursor did, or would do. */
export interface SeekResult {
  /** The last settled position after it. */
  cursor: number;
  /** Settled positions that are delivered again. */
  redelivered: number;
  /** Unsettled positions that are passed over. */
  skipped: number;
}

export async function getCursor(http: HttpTransport, topic: string, group: string, signal?: AbortSignal): Promise<CursorPosition | null> {
  try {
    const { cursors } = await http.json<{ cursors: (CursorPosition & { group: string })[] }>({ path: "/cursors", query: { topic }, signal });
    const found = cursors.find((cursor) => cursor.group === group);
    if (!found) return null;
    const { group: _group, ...cursor } = found;
    return cursor;
  } catch (error) {
    if (error instanceof PrombusError && error.code === "unknown_topic") return null;
    throw error;
  }
}

export async function seek(http: HttpTransport, topic: string, group: string, to: StartOptions & { dryRun?: boolean }, signal?: AbortSignal): Promise<SeekResult> {
  const { dryRun, ...position } = to;
  return http.json<SeekResult>({ method: "POST", path: "/cursors", body: { topic, group, ...position, dry_run: dryRun }, signal });
}

/** The position behind a cursor: by its seq, else its id, else its time; without any, the beginning. */
export function positionBehind(cursor: CursorPosition): StartOptions {
  if (cursor.lastSeq !== undefined) return { from: "seq", seq: cursor.lastSeq + 1 };
  if (cursor.lastId !== undefined) return { from: "afterId", afterId: cursor.lastId };
  if (cursor.lastTs !== undefined) return { from: "ts", ts: cursor.lastTs + 1 };
  return { from: "earliest" };
}

export function settle(http: HttpTransport, path: "/ack" | "/nack" | "/modack", body: object): Promise<{ published?: { topic: string; id: string; seq: number }[] }> {
  return http.json({ method: "POST", path, body });
}
