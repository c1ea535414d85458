/** The store that a call speaks to: from its options to a backend, and from what went wrong to a message. */
import { openBackend } from "../connect.ts";
import { type Backend, type Browsable, isBrowsable } from "../core/backend.ts";
import { hasCode, LockError } from "../core/errors.ts";
import { demand } from "../core/traits.ts";
import type { Call } from "./command.ts";
import { Failure } from "./messages.ts";
import { showStore } from "./store-url.ts";

/** How long closing may take; what is left open then ends with the process. */
const closeMs = 1_000;

/** The address of the store: the option, else the environment; undefined stands for the default. */
export function storeUrl(option: string | undefined, env: NodeJS.ProcessEnv): string | undefined {
  return option ?? (env["HOLDFAST_STORE"] || undefined);
}

/** The store of a call as people may see it. */
export function storeOf({ given, env }: Pick<Call, "given" | "env">): string {
  const cluster = given.value("cluster");
  return cluster === undefined ? showStore(storeUrl(given.value("store"), env)) : `${cluster} (throwaway)`;
}

/** Opens the store of a call, does the work, and closes it. What goes wrong becomes a Failure that names the store. */
export async function withStore<T>(call: Call, work: (backend: Backend) => Promise<T>): Promise<T> {
  return explained(call, async () => {
    const backend = await openShared(call);
    try {
      return await work(backend);
    } finally {
      await within(closeMs, backend.close());
    }
  });
}

/** Opens the store of a call; one that excludes only clients of the same process is refused: there are no others. */
export async function openShared(call: Call): Promise<Backend> {
  const backend = await openStore(call);
  try {
    demand(backend.name, backend.traits, { scope: "machine" });
    return backend;
  } catch (error) {
    await within(closeMs, backend.close());
    throw error;
  }
}

/** Opens the store of a call, whatever it promises. */
export async function openStore(call: Call): Promise<Backend> {
  return opening(() => openBackend(storeUrl(call.given.value("store"), call.env) ?? "sqlite:"));
}

/** Does work of which only the address of a store can be refused. */
export async function opening<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!hasCode(error, "LOCK_INVALID")) throw error;
    throw new Failure("address-refused", { reason: reasonOf(error) });
  }
}

/** A backend that can name its queues, or a Failure. */
export function browsable(call: Call, backend: Backend): Backend & Browsable {
  if (isBrowsable(backend)) return backend;
  const reason = `${backend.name} cannot list its locks`;
  throw new Failure("store-unsupported", { store: storeOf(call), reason });
}

/** Does the work; errors of the library become Failures that name the store. */
export async function explained<T>(call: Call, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw failureOf(call, error);
  }
}

/** An error as the message that people get; what is not known stays as it is. */
function failureOf(call: Call, error: unknown): unknown {
  const command = call.command.name;
  if (error instanceof DOMException && error.name === "NotSupportedError") {
    return new Failure("value-refused", { reason: error.message, command });
  }
  if (!(error instanceof LockError)) return error;
  const reason = reasonOf(error);
  const store = storeOf(call);
  switch (error.code) {
    case "LOCK_INVALID":
      return new Failure("value-refused", { reason, command });
    case "LOCK_UNSUPPORTED":
      return new Failure("store-unsupported", { store, reason });
    case "LOCK_UNAVAILABLE":
    case "LOCK_OUTCOME_UNKNOWN":
      return new Failure("store-unavailable", { store, reason, next: nextAfter(command) });
    case "LOCK_TIMEOUT":
      return new Failure("busy", { reason, name: error.lock ?? "" });
    default:
      return error;
  }
}

/** Where to look when a store does not do its work. */
function nextAfter(command: string): string {
  return command === "doctor" ? "its own log may say more" : "holdfast doctor looks at it";
}

/** What an error says, with what its cause adds. */
export function reasonOf(error: Error): string {
  const { cause } = error;
  if (!(cause instanceof Error) || cause.message === "" || error.message.includes(cause.message)) {
    return error.message;
  }
  return `${error.message} (${cause.message})`;
}

/** Waits for the work no longer than this; true if it ended in time, however it ended. */
export function within(ms: number, work: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), ms);
    const end = (): void => {
      clearTimeout(timer);
      resolve(true);
    };
    void work.then(end, end);
  });
}
