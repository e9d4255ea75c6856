/** Marks of what was done, in a table. Used inside the handler's own transaction they close the last gap. */

import type { DedupeStore } from "../exactly_once.js";
import type { SqliteDatabase, SqliteStatement } from "./database.js";

const SCHEMA = `CREATE TABLE IF NOT EXISTS prombus_marks (key TEXT PRIMARY KEY NOT NULL, until_ms INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS prombus_marks_until ON prombus_marks (until_ms)`;
/** Marks that have run out are removed so many at a time, with each new one. */
const PRUNED = 10;

export class SqliteDedupe implements DedupeStore {
  readonly #find: SqliteStatement;
  readonly #put: SqliteStatement;
  readonly #prune: SqliteStatement;

  readonly #now: () => number;

  constructor(database: SqliteDatabase, now: () => number = Date.now) {
    this.#now = now;
    database.exec(SCHEMA);
    this.#find = database.prepare("SELECT 1 FROM prombus_marks WHERE key = ? AND until_ms > ?");
    this.#put = database.prepare("INSERT INTO prombus_marks (key, until_ms) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET until_ms = excluded.until_ms");
    this.#prune = database.prepare(`DELETE FROM prombus_marks WHERE key IN (SELECT key FROM prombus_marks WHERE until_ms <= ? LIMIT ${PRUNED})`);
  }

  seen(key: string): boolean {
    return this.#find.get(key, this.#now()) !== undefined;
  }

  mark(key: string, ttlMs: number): void {
    this.#prune.run(this.#now());
    this.#put.run(key, this.#now() + ttlMs);
  }
}
