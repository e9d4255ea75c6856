/** The real server, started on a free port with a folder of its own, and stopped with the test. */

import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { cleanUp } from "./cleanup.js";

/** The root of the repository, seen from the compiled test. */
export const REPOSITORY = fileURLToPath(new URL("../../../../../", import.meta.url));

export interface ServerOptions {
  /** Lines of `prombus.toml`. */
  config?: string;
  token?: string;
  /** `memory:` where nothing has to survive; a file in the server's folder by default. */
  store?: string;
}

const READY_MS = 30_000;

export class Server {
  private child: ChildProcess | undefined;

  private constructor(readonly port: number, private readonly folder: string, private readonly options: ServerOptions) {}

  /** Starts a server that ends with the test. */
  static async start(context: Pick<TestContext, "after">, options: ServerOptions = {}): Promise<Server> {
    const folder = mkdtempSync(join(tmpdir(), "prombus-sdk-"));
    const server = new Server(await freePort(), folder, options);
    cleanUp(context, async () => {
      await server.kill();
      rmSync(folder, { recursive: true, force: true });
    });
    writeFileSync(join(folder, "prombus.toml"), options.config ?? "");
    await server.run();
    return server;
  }

  get url(): string {
    return `ws://127.0.0.1:${this.port}`;
  }

  get pid(): number {
    return this.child?.pid ?? 0;
  }

  /** Starts it again, on the same port and store. */
  async run(): Promise<void> {
    const { token, store = `file:${join(this.folder, "data")}` } = this.options;
    const flags = ["serve", "--listen", `127.0.0.1:${this.port}`, "--store", store, "--config", join(this.folder, "prombus.toml")];
    if (token) flags.push("--token", token);
    // The server takes variables that begin with PROMBUS_ for settings.
    const { PROMBUS_BIN: _program, ...env } = process.env;
    const child = spawn(binary(), flags, { cwd: this.folder, env, stdio: ["ignore", "pipe", "pipe"] });
    this.child = child;
    await new Promise<void>((resolve, reject) => {
      let output = "";
      const timer = setTimeout(() => reject(new Error(`the server is not ready: ${output}`)), READY_MS);
      const collect = (chunk: Buffer): void => {
        output = (output + String(chunk)).slice(-4_096);
        if (!output.includes("prombus ready on")) return;
        clearTimeout(timer);
        resolve();
      };
      child.stdout?.on("data", collect);
      child.stderr?.on("data", collect);
      child.once("exit", (code) => reject(new Error(`the server ended with ${code}: ${output}`)));
    });
  }

  /** Ends it at once, as a crash does. */
  kill(): Promise<void> {
    return this.end("SIGKILL");
  }

  /** Ends it as an operator does. */
  stop(): Promise<void> {
    return this.end("SIGTERM");
  }

  private async end(signal: NodeJS.Signals): Promise<void> {
    const { child } = this;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signal);
    await ended;
  }
}

/** The server's program: `PROMBUS_BIN`, or what cargo built. */
function binary(): string {
  const built = [process.env["PROMBUS_BIN"], join(REPOSITORY, "target/release/prombus"), join(REPOSITORY, "target/debug/prombus")];
  const found = built.find((path) => path !== undefined && existsSync(path));
  if (!found) throw new Error("no server: set PROMBUS_BIN or run cargo build --release -p prombus-cli");
  return found;
}

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address() as { port: number };
      probe.close(() => resolve(port));
    });
  });
}
