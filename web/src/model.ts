/** What the server replies, as far as the page uses it. */

export interface EventRecord {
  id: string;
  sid?: string;
  ts: number;
  topic: string;
  seq: number;
  key?: string;
  partition?: number;
  headers?: Record<string, string>;
  payload: unknown;
  caused_by?: string[];
  tags?: string[];
}

export interface EventPage {
  topic: string;
  count: number;
  events: EventRecord[];
  next: number | null;
}

export interface TopicConfig {
  durability: "fsync" | "os";
  retention?: string;
  max_bytes?: number;
  max_events?: number;
  compaction: boolean;
  snapshot_topic?: string;
  snapshot_interval?: string;
  partitions?: number;
}

export interface TopicInfo {
  topic: string;
  first_seq: number;
  tail_seq: number;
  events: number;
  bytes: number;
  config: TopicConfig;
}

export interface TopicRow extends TopicInfo {
  last_ts?: number;
  per_minute: number;
  recent: number[];
}

export interface Member {
  name: string;
  paused: boolean;
  in_flight: number;
  max_in_flight: number;
  room: number;
  oldest_in_flight_ms: number;
}

export interface GroupInfo {
  topic: string;
  group: string;
  paused: boolean;
  created_ms: number;
  cursor: number;
  tail: number;
  lag: number;
  skipped: number;
  ack_timeout_ms: number;
  max_attempts: number;
  ordering: string;
  members: Member[];
  in_flight: number;
  waiting: number;
  oldest_in_flight_ms: number;
  counts: Record<string, number>;
}

export interface GroupRow extends GroupInfo {
  reason: string;
  sentence: string;
  oldest_unacked_ms: number;
  recent_lag: number[];
}

export interface Explanation {
  sentence: string;
  reason: string;
  lanes?: { blocked_by_seq: number; blocked_by_id?: string; key?: string; waiting: number; due_ms?: number }[];
  next_retry_ms?: number;
  damage?: string[];
  group: GroupInfo;
}

export interface SeekReply {
  dry_run: boolean;
  cursor: number;
  redelivered: number;
  skipped: number;
  beyond_tail: boolean;
}

export interface Attempt {
  member: string;
  start: number;
  end: number;
  reason: string;
}

export interface DeadLetter {
  topic: string;
  group: string;
  original: EventRecord;
  err: string;
  ts: number;
  attempts: number;
  history: Attempt[];
}

export interface Letter extends EventRecord {
  redriven?: boolean;
}

export interface RedriveReply {
  dry_run: boolean;
  matched: number;
  redriven: number;
  failed: { id: string; code: string; error: string }[];
}

export interface KeyState {
  key: string;
  payload: unknown;
  ts: number;
  seq: number;
  id?: string;
}

export interface ListPage {
  total: number;
  offset: number;
  items: KeyState[];
  next: number | null;
}

export type Allowed = "all" | "part" | "nothing";

export interface Access {
  subject?: string;
  expires_ms?: number;
  publish: Allowed;
  subscribe: Allowed;
  admin: Allowed;
}

export interface ServerStatus {
  version: string;
  now_ms: number;
  started_ms: number;
  requires_token: boolean;
  max_payload_bytes: number;
  access: Access;
  store?: { url: string; durability: string; bytes: number; topics: number; damage: number; failed?: string };
  projectors?: ProjectorSummary[];
}

export interface ProjectorSummary {
  name: string;
  input: string;
  output: string;
  position: number;
  lag: number;
  emitted: number;
  rejected: number;
  last_rejection?: string;
  standby: boolean;
  error?: string;
}

export interface Finding {
  kind: "store_failing" | "damage" | "stuck_group" | "growing_lag" | "dead_letters" | "rate_limited" | "projector";
  level: "error" | "warning" | "notice";
  sentence: string;
  topic?: string;
  group?: string;
  reason?: string;
}

export interface HistoryPage {
  now_ms: number;
  interval_ms: number;
  ts: number[];
  published: number[];
  delivered: number[];
  acked: number[];
  nacked: number[];
  redelivered: number[];
  dead_lettered: number[];
  rate_limited: number[];
  fsyncs: number[];
  fsync_p50_us: number[];
  fsync_p99_us: number[];
  connections: number[];
  store_bytes: number[];
  lag: number[];
}

export interface HistogramReply {
  from_ts: number;
  to_ts: number;
  bucket_ms: number;
  counts: number[];
}

export interface Causes {
  event: EventRecord;
  causes: EventRecord[];
  unknown: string[];
  effects: EventRecord[];
  complete: boolean;
}
