import { messageOf, NoTokenError } from "../errors.js";
export async function askToken(source) {
    if (source === undefined)
        return undefined;
    if (typeof source === "string")
        return withExpiry(source);
    try {
        const given = await source();
        return typeof given === "string" ? withExpiry(given) : given;
    }
    catch (cause) {
        throw new NoTokenError("no_token", `the token provider failed: ${messageOf(cause)}`, { cause });
    }
}
export function refreshDelayMs(token, nowMs) {
    if (token?.expiresAt === undefined)
        return undefined;
    const leftMs = token.expiresAt - nowMs;
    return Math.max(MIN_REFRESH_MS, leftMs - Math.max(2_000, leftMs / 10));
}
const MIN_REFRESH_MS = 500;
function withExpiry(token) {
    const expiresAt = jwtExpiry(token);
    return expiresAt === undefined ? { token } : { token, expiresAt };
}
function jwtExpiry(token) {
    const claims = token.split(".")[1];
    if (!claims)
        return undefined;
    try {
        const { exp } = JSON.parse(atob(claims.replace(/-/g, "+").replace(/_/g, "/")));
        return typeof exp === "number" ? exp * 1000 : undefined;
    }
    catch {
        return undefined;
    }
}
