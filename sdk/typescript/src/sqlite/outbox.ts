/** The outbox in SQLite. `add` joins whatever transaction the database has open. */

import type { ClaimedEvent, OutboxEvent, OutboxStore } from "../outbox.js";
import type { SqliteDatabase, SqliteStatement } from "./database.js";

/** The same table as that of the Rust crate, so that either drainer publishes what either side wrote. */
const SCHEMA = `CREATE TABLE IF NOT EXISTS prombus_outbox (
    seq            INTEGER PRIMARY KEY AUTOINCREMENT,
    id             TEXT    NOT NULL DEFAULT (lower(hex(randomblob(16)))),
    topic          TEXT    NOT NULL,
    payload        TEXT    NOT NULL,
    key            TEXT,
    ts             INTEGER,
    headers        TEXT,
    tags           TEXT,
    caused_by      TEXT,
    sid            TEXT,
    created_ms     INTEGER NOT NULL
                   DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)),
    state          TEXT    NOT NULL DEFAULT 'pending'
                   CHECK (state IN ('pending', 'claimed', 'sent', 'failed')),
    attempts       INTEGER NOT NULL DEFAULT 0,
    due_ms         INTEGER NOT NULL DEFAULT 0,
    worker         TEXT,
    lease_until_ms INTEGER,
    sent_ms        INTEGER,
    sent_seq       INTEGER,
    error          TEXT,
    UNIQUE (topic, id)
);
CREATE INDEX IF NOT EXISTS prombus_outbox_pending ON prombus_outbox (seq) WHERE state = 'pending';
CREATE INDEX IF NOT EXISTS prombus_outbox_claimed ON prombus_outbox (lease_until_ms) WHERE state = 'claimed';
CREATE INDEX IF NOT EXISTS prombus_outbox_held ON prombus_outbox (topic, key, seq)
    WHERE key IS NOT NULL AND state = 'claimed';
CREATE INDEX IF NOT EXISTS prombus_outbox_waiting ON prombus_outbox (topic, key, seq)
    WHERE key IS NOT NULL AND state = 'pending' AND due_ms > 0;
CREATE INDEX IF NOT EXISTS prombus_outbox_sent ON prombus_outbox (sent_ms) WHERE state = 'sent'`;

const ADD = `INSERT INTO prombus_outbox (id, topic, payload, key, ts, headers, tags, caused_by, sid)
    VALUES (coalesce(?, lower(hex(randomblob(16)))), ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`;

/** One statement, so that two drainers never claim the same row. A row waits for earlier ones of its key. */
const CLAIM = `UPDATE prombus_outbox SET state = 'claimed', worker = ?1, lease_until_ms = ?2, attempts = attempts + 1
    WHERE seq IN (SELECT mine.seq FROM prombus_outbox AS mine
        WHERE mine.state = 'pending' AND mine.due_ms <= ?3 AND (mine.key IS NULL OR NOT EXISTS (
            SELECT 1 FROM prombus_outbox AS other WHERE other.topic = mine.topic AND other.key = mine.key
                AND other.seq < mine.seq AND other.key IS NOT NULL
                AND (other.state = 'claimed' OR (other.state = 'pending' AND other.due_ms > ?3))))
        ORDER BY mine.seq LIMIT ?4)
    RETURNING seq, id, topic, payload, key, ts, headers, tags, caused_by, sid, attempts`;

const SENT = `UPDATE prombus_outbox
    SET state = 'sent', sent_ms = ?2, sent_seq = ?3, worker = NULL, lease_until_ms = NULL, error = NULL
    WHERE seq = ?1 AND state IN ('pending', 'claimed')`;
const RETRY = `UPDATE prombus_outbox SET state = 'pending', due_ms = ?3, worker = NULL, lease_until_ms = NULL, error = ?4
    WHERE seq = ?1 AND state = 'claimed' AND worker = ?2`;
const FAIL = `UPDATE prombus_outbox SET state = 'failed', worker = NULL, lease_until_ms = NULL, error = ?3
    WHERE seq = ?1 AND state = 'claimed' AND worker = ?2`;
const REQUEUE = `UPDATE prombus_outbox SET state = 'pending', worker = NULL, lease_until_ms = NULL, due_ms = ?1,
    error = 'the lease of ' || worker || ' expired' WHERE state = 'claimed' AND lease_until_ms <= ?1`;

interface Row {
  seq: number;
  id: string;
  topic: string;
  payload: string;
  key: string | null;
  ts: number | null;
  headers: string | null;
  tags: string | null;
  caused_by: string | null;
  sid: string | null;
  attempts: number;
}

export class SqliteOutbox implements OutboxStore {
  readonly #worker = `node-${crypto.randomUUID()}`;
  readonly #statements: Record<"add" | "claim" | "sent" | "retry" | "fail" | "requeue", SqliteStatement>;

  readonly #now: () => number;

  constructor(database: SqliteDatabase, now: () => number = Date.now) {
    this.#now = now;
    database.exec(SCHEMA);
    const prepare = (sql: string): SqliteStatement => database.prepare(sql);
    this.#statements = { add: prepare(ADD), claim: prepare(CLAIM), sent: prepare(SENT), retry: prepare(RETRY), fail: prepare(FAIL), requeue: prepare(REQUEUE) };
  }

  add({ topic, payload, id, opts = {} }: OutboxEvent): string {
    const { key = null, ts = null, sid = null } = opts;
    const list = (value: unknown): string | null => (value === undefined ? null : JSON.stringify(value));
    const text = JSON.stringify(payload);
    if (text === undefined) throw new TypeError("the payload is not JSON");
    const row = this.#statements.add.get(id ?? null, topic, text, key, ts, list(opts.headers), list(opts.tags), list(opts.caused_by), sid);
    return (row as { id: string }).id;
  }

  claimBatch(limit: number, leaseMs: number): ClaimedEvent[] {
    const nowMs = this.#now();
    const rows = this.#statements.claim.all(this.#worker, nowMs + leaseMs, nowMs, limit) as Row[];
    // What an UPDATE returns has no order of its own.
    return rows.sort((one, other) => one.seq - other.seq).map(claimed);
  }

  markSent(row: number, seq: number): void {
    this.#statements.sent.run(row, this.#now(), seq);
  }

  markError(row: number, error: string, retryAtMs: number | undefined): void {
    if (retryAtMs === undefined) this.#statements.fail.run(row, this.#worker, error);
    else this.#statements.retry.run(row, this.#worker, Math.ceil(retryAtMs), error);
  }

  requeueExpired(): number {
    return Number(this.#statements.requeue.run(this.#now()).changes);
  }
}

function claimed(row: Row): ClaimedEvent {
  const opts: ClaimedEvent["opts"] = {};
  if (row.key !== null) opts.key = row.key;
  if (row.ts !== null) opts.ts = row.ts;
  if (row.sid !== null) opts.sid = row.sid;
  if (row.headers !== null) opts.headers = JSON.parse(row.headers) as Record<string, string>;
  if (row.tags !== null) opts.tags = JSON.parse(row.tags) as string[];
  if (row.caused_by !== null) opts.caused_by = JSON.parse(row.caused_by) as string[];
  return { row: row.seq, id: row.id, topic: row.topic, payload: JSON.parse(row.payload), opts, attempts: row.attempts };
}
