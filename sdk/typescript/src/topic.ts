/** Typed topics: a topic with its payload type is declared once and used to publish and subscribe. */

import { SchemaInvalidError } from "./errors.js";

/** What a validator has to say about a payload. */
export interface Issue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** The outcome of a validation. */
export type SchemaResult<Output> = { readonly value: Output; readonly issues?: undefined } | { readonly issues: readonly Issue[] };

/** Any validator that follows Standard Schema 1 (https://standardschema.dev): zod, valibot, arktype and others. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/** A topic with the type of its payloads: `Input` is published, `Output` is received. */
export interface Topic<Input = unknown, Output = Input> {
  readonly name: string;
  readonly schema?: StandardSchema<Input, Output> | undefined;
  /** Only for the compiler: the payload types. */
  readonly types?: { input: Input; output: Output };
}

/** A topic by its name, or a typed one. */
export type TopicName<Input = unknown, Output = Input> = string | Topic<Input, Output>;

/** Declares a topic, optionally with a validator: what is published is checked, what is received is parsed. */
export function defineTopic<Input, Output = Input>(name: string, schema?: StandardSchema<Input, Output>): Topic<Input, Output> {
  return { name, schema };
}

export function nameOf(topic: TopicName<unknown, unknown>): string {
  return typeof topic === "string" ? topic : topic.name;
}

export function schemaOf<Output>(topic: TopicName<unknown, Output>): StandardSchema<unknown, Output> | undefined {
  return typeof topic === "string" ? undefined : (topic.schema as StandardSchema<unknown, Output> | undefined);
}

/** Throws for a payload that the topic's schema does not accept. */
export function checkPayload(schema: StandardSchema, topic: string, payload: unknown): void | Promise<void> {
  const judge = (result: SchemaResult<unknown>): void => {
    if (result.issues) throw new InvalidPayloadError(topic, result.issues);
  };
  const result = schema["~standard"].validate(payload);
  return result instanceof Promise ? result.then(judge) : judge(result);
}

/** A payload does not fit the schema that its topic was defined with. */
export class InvalidPayloadError extends SchemaInvalidError {
  constructor(topic: string, readonly issues: readonly Issue[]) {
    super("schema_invalid", `invalid payload for ${topic}: ${issuesText(issues)}`);
  }
}

/** The issues in one line. */
export function issuesText(issues: readonly Issue[]): string {
  const format = ({ message, path }: Issue): string => {
    const parts = path?.map((part) => String(typeof part === "object" ? part.key : part));
    return parts?.length ? `${parts.join(".")}: ${message}` : message;
  };
  return issues.map(format).join("; ");
}
