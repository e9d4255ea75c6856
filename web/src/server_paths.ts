/** Which requests this server knows, by its own document; a page that is older or newer than it asks before it offers them. */

import { get } from "./api.js";

let known: Promise<Record<string, unknown>> | undefined;

export async function hasPath(path: string): Promise<boolean> {
  known ??= get<{ paths: Record<string, unknown> }>("/openapi.json").then(({ paths }) => paths);
  try {
    return path in (await known);
  } catch {
    // Asked again next time.
    known = undefined;
    return false;
  }
}
