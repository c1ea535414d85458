/** Promises as tests need them: settled by hand, or looked at without waiting. */

/** A promise that a test settles itself. */
export interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
}

/** Makes a promise that is settled by hand. */
export function deferred<T = void>(): Deferred<T> {
  let resolve: (value: T) => void = ignore;
  let reject: (error: unknown) => void = ignore;
  const promise = new Promise<T>((resolvePromise, rejectPromise) => {
    resolve = resolvePromise;
    reject = rejectPromise;
  });
  return { promise, resolve, reject };
}

/** What has become of a promise so far. */
export interface Watched<T> {
  status: "pending" | "fulfilled" | "rejected";
  value: T | undefined;
  error: unknown;
}

/** Looks at a promise; a rejection counts as seen. */
export function track<T>(promise: Promise<T>): Watched<T> {
  const watched: Watched<T> = { status: "pending", value: undefined, error: undefined };
  const follow = async (): Promise<void> => {
    try {
      watched.value = await promise;
      watched.status = "fulfilled";
    } catch (error) {
      watched.error = error;
      watched.status = "rejected";
    }
  };
  void follow();
  return watched;
}

/** What a promise rejects with; fails the test if it does not. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("the promise was expected to reject, but it was fulfilled");
}

/** A promise that never settles: a call that hangs. */
export function hanging<T>(): Promise<T> {
  return new Promise<T>(() => {});
}

function ignore(): void {}
