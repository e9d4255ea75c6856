/** Where tokens come from, and when a fresh one is needed. */

import { messageOf, NoTokenError } from "../errors.js";

/** A token with the time it expires; a JWT says that itself. */
export interface Token {
  token: string;
  /** Epoch milliseconds. */
  expiresAt?: number;
}

/** A token for the whole life of the client, or a function that gives a fresh one. */
export type TokenSource = string | (() => string | Token | Promise<string | Token>);

/** The token for the next AUTH. */
export async function askToken(source: TokenSource | undefined): Promise<Token | undefined> {
  if (source === undefined) return undefined;
  if (typeof source === "string") return withExpiry(source);
  try {
    const given = await source();
    return typeof given === "string" ? withExpiry(given) : given;
  } catch (cause) {
    throw new NoTokenError("no_token", `the token provider failed: ${messageOf(cause)}`, { cause });
  }
}

/** How long to wait before the token is replaced: a tenth of its time, at least two seconds, before it expires. */
export function refreshDelayMs(token: Token | undefined, nowMs: number): number | undefined {
  if (token?.expiresAt === undefined) return undefined;
  const leftMs = token.expiresAt - nowMs;
  return Math.max(MIN_REFRESH_MS, leftMs - Math.max(2_000, leftMs / 10));
}

/** Tokens are not asked for more often than this. */
const MIN_REFRESH_MS = 500;

function withExpiry(token: string): Token {
  const expiresAt = jwtExpiry(token);
  return expiresAt === undefined ? { token } : { token, expiresAt };
}

/** The claim `exp` of a JWT in epoch milliseconds. The signature is the server's to check. */
function jwtExpiry(token: string): number | undefined {
  const claims = token.split(".")[1];
  if (!claims) return undefined;
  try {
    const { exp } = JSON.parse(atob(claims.replace(/-/g, "+").replace(/_/g, "/"))) as { exp?: unknown };
    return typeof exp === "number" ? exp * 1000 : undefined;
  } catch {
    return undefined;
  }
}
