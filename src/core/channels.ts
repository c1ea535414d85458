/** The diagnostics_channel names and messages of the core, in one place; publishing costs nothing when nobody listens. */
import { channel } from "node:diagnostics_channel";
import type { LockErrorCode } from "./errors.ts";

/** What every message says: whose request on which lock. */
export interface LockEvent {
  readonly name: string;
  readonly mode: "exclusive" | "shared";
  readonly backend: string;
  readonly clientId: string;
  /** The id of the request's entry, the same in all its messages. */
  readonly id: string;
}

/** What a message of each channel says beyond LockEvent. */
export interface LockEvents {
  /** A request was made. */
  request: LockEvent;
  /** It was granted. */
  grant: LockEvent & { readonly token: bigint; readonly waitedMs: number };
  /** A renewal was answered, or not. */
  renew: LockEvent & { readonly outcome: "renewed" | "gone" | "unknown"; readonly cause?: unknown };
  /** Holding is no longer certain. */
  lost: LockEvent & { readonly token: bigint; readonly why: LossCause; readonly heldMs: number };
  /** It was released; `unknown` when the store did not answer, and the ttl frees it. */
  release: LockEvent & {
    readonly token: bigint;
    readonly outcome: "released" | "gone" | "unknown";
    readonly heldMs: number;
  };
  /** It ended without a grant. */
  cancel: LockEvent & { readonly code: LockErrorCode | "BUSY"; readonly waitedMs: number };
  /** It evicted the entries that were ahead. */
  steal: LockEvent & { readonly evicted: readonly { readonly id: string; readonly token: bigint }[] };
}

/** Why holding is no longer certain. */
export type LossCause =
  /** Its validity ended without a renewal that was answered in time. */
  | "expired"
  /** Somebody took it away: steal or a forced release. */
  | "evicted"
  /** The store does not have it any more. */
  | "gone"
  /** It was held for maxHold. */
  | "max-hold"
  /** Its LockManager was closed. */
  | "closed";

/** The part of a diagnostics channel that the core uses. Build the message only if somebody listens. */
export interface Feed<Message> {
  readonly hasSubscribers: boolean;
  publish(message: Message): void;
}

/** The channels, `holdfast:request` and so on. */
export const channels: { readonly [Key in keyof LockEvents]: Feed<LockEvents[Key]> } = {
  request: channel("holdfast:request"),
  grant: channel("holdfast:grant"),
  renew: channel("holdfast:renew"),
  lost: channel("holdfast:lost"),
  release: channel("holdfast:release"),
  cancel: channel("holdfast:cancel"),
  steal: channel("holdfast:steal"),
};
