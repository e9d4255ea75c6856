/** Frames of the wire as this client reads and writes them. */

import { errorFor, type PrombusError } from "./errors.js";
import type { EventRecord } from "./record.js";

export interface OkFrame {
  op: "OK";
  corr?: string;
  id?: string;
  seq?: number;
  ts?: number;
  duplicate?: boolean;
  scheduled?: boolean;
  due?: number;
  group?: string;
  published?: { topic: string; id: string; seq: number; ts?: number; duplicate?: boolean }[];
}

export interface ErrFrame {
  op: "ERR";
  corr?: string;
  code: string;
  msg: string;
  retry_after_ms?: number;
  actual?: number;
}

export interface EventFrame {
  op: "EVENT";
  topic: string;
  group: string;
  event: EventRecord;
  ctx: { attempt: number; maxAttempts?: number; ack_deadline_ms: number };
}

/** Partitions come to a subscription, or go from it. */
export interface PartitionsFrame {
  op: "ASSIGN" | "REVOKE";
  topic: string;
  group: string;
  partitions: number[];
}

/** Frames of newer servers have other ops and are passed over. */
export type ServerFrame = OkFrame | ErrFrame | EventFrame | PartitionsFrame;

export function errorOf(frame: ErrFrame): PrombusError {
  return errorFor(frame.code, frame.msg, { retryAfterMs: frame.retry_after_ms, actual: frame.actual });
}

/** Text of a frame: the fields that are not `undefined`. */
export function frame(op: string, fields: object): string {
  return JSON.stringify({ op, ...fields });
}
