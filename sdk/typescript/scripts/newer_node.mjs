/** A Node that has `node:sqlite` and a global WebSocket: this one, or one from the registry, installed beside the build. */

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const VERSION = "22.23.3";

/** The path of its program. */
export function newerNode() {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  if (major > 22 || (major === 22 && minor >= 13)) return process.execPath;
  const folder = fileURLToPath(new URL(`../../../target/node-${VERSION}`, import.meta.url));
  const name = `node-${process.platform}-${process.arch}`;
  const program = join(folder, "node_modules", name, "bin", "node");
  if (!existsSync(program)) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "package.json"), "{}");
    execFileSync("npm", ["install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", `${name}@${VERSION}`], { cwd: folder, stdio: "ignore" });
  }
  return program;
}
