/**
 * Client of prombus, a durable event bus, for Node and browsers.
 *
 * @packageDocumentation
 */

export { connect, Client } from "./client.js";
export type { ClientOptions, Logger, ReconnectOptions, TraceHook } from "./options.js";
export type { ClientEvents, ConnectionState } from "./link/link.js";
export type { Token, TokenSource } from "./link/token.js";
export type {
  AlsoPublish,
  CursorPosition,
  DeliveryContext,
  EventRecord,
  GroupOptions,
  OutgoingEvent,
  PublishOptions,
  StartOptions,
  StoredRecord,
  WireFilter,
} from "./record.js";
export type { BatchResult, PublishCallOptions } from "./publish/publisher.js";
export { Delivery } from "./subscription/delivery.js";
export type { Handler } from "./subscription/handlers.js";
export { DeliveryIterator } from "./subscription/iterator.js";
export type { SubscribeOptions } from "./subscription/options.js";
export type { PartitionHooks } from "./subscription/partitions.js";
export { Subscription } from "./subscription/subscription.js";
export { defineTopic, InvalidPayloadError } from "./topic.js";
export type { Issue, SchemaResult, StandardSchema, Topic, TopicName } from "./topic.js";
export { PulledDelivery } from "./http/pull.js";
export type { PullOptions } from "./http/pull.js";
export type { ExportOptions, ReplayOptions } from "./http/read.js";
export type { KeyState, ListOptions, ListPage } from "./http/state.js";
export type { SeekResult } from "./http/groups.js";
export { StateTable } from "./state_table.js";
export type { LoadStateOptions, StateChange } from "./state_table.js";
export { PrombusEventBus } from "./event_bus.js";
export type { Ack, BusSubscribeOptions, EventBus } from "./event_bus.js";
export { MemoryDedupe, subscribeExactlyOnce } from "./exactly_once.js";
export type { DedupeStore, ExactlyOnceOptions } from "./exactly_once.js";
export { runOutboxDrainer } from "./outbox.js";
export type { ClaimedEvent, DrainerOptions, OutboxDrainer, OutboxEvent, OutboxStore } from "./outbox.js";
export type { ClientCode, ReasonCode, ServerCode } from "./codes.js";
export type { ErrorDetails } from "./errors.js";
export type { WebSocketConstructor, WebSocketLike } from "./transport/websocket.js";
export {
  PrombusError,
  BadJsonError,
  BadFrameError,
  UnknownOpError,
  BadTopicError,
  BadGroupError,
  UnauthorizedError,
  BadTokenError,
  TokenExpiredError,
  ForbiddenError,
  RateLimitedError,
  TooLargeError,
  AlreadySubscribedError,
  NotSubscribedError,
  UnknownIdError,
  LeaseLostError,
  IdConflictError,
  GroupMismatchError,
  SeqMismatchError,
  UnknownTopicError,
  SchemaInvalidError,
  PublishFailedError,
  AckFailedError,
  ShuttingDownError,
  UnknownGroupError,
  UnknownKeyError,
  DeletedKeyError,
  HistoryGoneError,
  NotFoundError,
  MethodNotAllowedError,
  TimeoutError,
  ReadFailedError,
  UnreachableError,
  ProtocolError,
  NoTokenError,
  GaveUpError,
  ClosedError,
  UnknownOutcomeError,
  ConnectionLostError,
  QueueFullError,
  HookFailedError,
  BadOptionError,
} from "./errors.js";
