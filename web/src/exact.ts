/** JSON whose numbers stay as they were written where JavaScript would round them. */

/** A number that JavaScript cannot hold exactly. */
export class ExactNumber {
  constructor(readonly source: string) {}

  toJSON(): unknown {
    const { rawJSON } = JSON as unknown as { rawJSON?: (text: string) => unknown };
    return rawJSON ? rawJSON(this.source) : Number(this.source);
  }

  toString(): string {
    return this.source;
  }
}

type Reviver = (this: unknown, key: string, value: unknown, context?: { source?: string }) => unknown;

/** Browsers that do not tell how a number was written give it rounded. */
export function parseExact(text: string): unknown {
  const revive: Reviver = (_key, value, context) => {
    const source = context?.source;
    return typeof value === "number" && source !== undefined && !Number.isSafeInteger(value) && String(value) !== source ? new ExactNumber(source) : value;
  };
  return JSON.parse(text, revive as (this: unknown, key: string, value: unknown) => unknown);
}
