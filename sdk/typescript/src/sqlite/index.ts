/**
 * The outbox and marks on SQLite, for Node: pass a `DatabaseSync` of `node:sqlite` (Node 22.5 and later) or a database
 * of `better-sqlite3`. The table `prombus_outbox` is that of the Rust crate and of `prombus outbox`.
 *
 * @packageDocumentation
 */

export type { SqliteDatabase, SqliteStatement, SqliteValue } from "./database.js";
export { SqliteDedupe } from "./dedupe.js";
export { SqliteOutbox } from "./outbox.js";
