/** An OpenAPI document as a list of operations, and example bodies from its schemas. */

export interface Schema {
  $ref?: string;
  type?: string | string[];
  enum?: string[];
  default?: unknown;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  oneOf?: Schema[];
}

export interface Parameter {
  in: string;
  name: string;
  required: boolean;
  description: string;
  schema: Schema;
}

interface DescribedOperation {
  operationId: string;
  summary: string;
  parameters?: Parameter[];
  requestBody?: { content: Record<string, { schema: Schema }> };
}

export interface Document {
  paths: Record<string, Record<string, DescribedOperation>>;
  components: { schemas: Record<string, Schema> };
}

export interface Operation {
  id: string;
  method: string;
  path: string;
  summary: string;
  parameters: Parameter[];
  bodyType: string | undefined;
  bodySchema: Schema | undefined;
  /** It removes something. */
  isDestructive: boolean;
}

export function operationsOf(document: Document): Operation[] {
  return Object.entries(document.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, described]): Operation => {
    const bodies = Object.entries(described.requestBody?.content ?? {});
    // Where there is a choice, plain JSON is what people mean.
    const body = bodies.find(([type]) => type === "application/json") ?? bodies[0];
    return {
      id: described.operationId, method: method.toUpperCase(), path, summary: described.summary, parameters: described.parameters ?? [],
      bodyType: body?.[0], bodySchema: body?.[1].schema, isDestructive: method === "delete" || path.endsWith("/purge"),
    };
  }));
}

/** What fields are called by in examples. */
const VALUES: Record<string, unknown> = { topic: "hello", group: "readers", max: 10, wait_ms: 1000, from: "earliest", ids: [], dry_run: true, durability: "fsync" };
const SHOWN = new Set(["from", "max", "wait_ms", "dry_run", "durability"]);

/** A body with what has to be there, and a few fields that one mostly wants. */
export function exampleOf(document: Document, { bodySchema, path }: Operation): string {
  const schema = resolved(document, bodySchema);
  if (!schema?.properties) return path.startsWith("/publish") ? '{"text":"hi"}' : '{"payload":{"text":"hi"}}';
  const names = Object.keys(schema.properties).filter((name) => schema.required?.includes(name) || SHOWN.has(name));
  return JSON.stringify(Object.fromEntries(names.map((name) => [name, valueOf(document, name, schema.properties?.[name])])), null, 2);
}

function valueOf(document: Document, name: string, schema: Schema | undefined): unknown {
  if (name in VALUES) return VALUES[name];
  const found = resolved(document, schema);
  if (found?.enum) return found.enum[0];
  switch (Array.isArray(found?.type) ? found.type[0] : found?.type) {
    case "integer": return 1;
    case "boolean": return false;
    case "array": return [];
    case "object": return {};
    default: return "";
  }
}

function resolved(document: Document, schema: Schema | undefined): Schema | undefined {
  const name = schema?.$ref?.split("/").at(-1);
  return name === undefined ? schema : document.components.schemas[name];
}
