/** Clients that close with their test. */

import type { TestContext } from "node:test";
import { cleanUp } from "./cleanup.js";
import { type Client, type ClientOptions, connect } from "@prombus/client";

export async function client(context: Pick<TestContext, "after">, url: string, options: Partial<ClientOptions> = {}): Promise<Client> {
  const made = await connect({ url, reconnect: { baseMs: 20, capMs: 300 }, closeTimeoutMs: 3_000, ...options });
  cleanUp(context, () => made.close());
  return made;
}
