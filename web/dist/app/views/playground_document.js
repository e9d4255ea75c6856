export function operationsOf(document) {
    return Object.entries(document.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, described]) => {
        const bodies = Object.entries(described.requestBody?.content ?? {});
        const body = bodies.find(([type]) => type === "application/json") ?? bodies[0];
        return {
            id: described.operationId, method: method.toUpperCase(), path, summary: described.summary, parameters: described.parameters ?? [],
            bodyType: body?.[0], bodySchema: body?.[1].schema, isDestructive: method === "delete" || path.endsWith("/purge"),
        };
    }));
}
const VALUES = { topic: "hello", group: "readers", max: 10, wait_ms: 1000, from: "earliest", ids: [], dry_run: true, durability: "fsync" };
const SHOWN = new Set(["from", "max", "wait_ms", "dry_run", "durability"]);
export function exampleOf(document, { bodySchema, path }) {
    const schema = resolved(document, bodySchema);
    if (!schema?.properties)
        return path.startsWith("/publish") ? '{"text":"hi"}' : '{"payload":{"text":"hi"}}';
    const names = Object.keys(schema.properties).filter((name) => schema.required?.includes(name) || SHOWN.has(name));
    return JSON.stringify(Object.fromEntries(names.map((name) => [name, valueOf(document, name, schema.properties?.[name])])), null, 2);
}
function valueOf(document, name, schema) {
    if (name in VALUES)
        return VALUES[name];
    const found = resolved(document, schema);
    if (found?.enum)
        return found.enum[0];
    switch (Array.isArray(found?.type) ? found.type[0] : found?.type) {
        case "integer": return 1;
        case "boolean": return false;
        case "array": return [];
        case "object": return {};
        default: return "";
    }
}
function resolved(document, schema) {
    const name = schema?.$ref?.split("/").at(-1);
    return name === undefined ? schema : document.components.schemas[name];
}
