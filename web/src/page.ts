/** What a view gives the shell. */

import type { Route } from "./router.js";

export interface Page {
  /** For the tab and for screen readers. */
  title: string;
  element: HTMLElement;
  /** Brings the numbers up to date; called with every sample of the server, one call at a time. */
  refresh?(): Promise<void> | void;
  /** Stops what goes on in the background. */
  dispose?(): void;
}

export type View = (route: Route) => Page;
