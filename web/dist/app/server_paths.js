import { get } from "./api.js";
let known;
export async function hasPath(path) {
    known ??= get("/openapi.json").then(({ paths }) => paths);
    try {
        return path in (await known);
    }
    catch {
        known = undefined;
        return false;
    }
}
