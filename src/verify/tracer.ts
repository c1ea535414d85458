/**
 * Reads a history once and joins its events to a trace. Refuses a history that makes no sense: an answer to a call that
 * was never made, an attempt that nobody asked for, a gap, time going back. It judges nothing else.
 */
import { HistoryError, type HistoryEvent } from "./history.ts";
import { join, single, wrong } from "./join.ts";
import { isOwner, rootOf, type Attempt, type Call, type Grant, type LockTrace, type Trace } from "./trace.ts";
import { settleValidity } from "./validity.ts";

/** Joins a history. Throws a HistoryError at the first event that contradicts an earlier one. */
export function traceHistory(events: readonly HistoryEvent[]): Trace {
  return new Tracer(events).run();
}

class Tracer implements Trace {
  readonly events: readonly HistoryEvent[];
  readonly locks = new Map<string, LockTrace>();
  readonly attempts = new Map<string, Attempt>();
  readonly grants: Grant[] = [];
  readonly writes: Call[] = [];
  readonly reads: Call[] = [];
  readonly held: HistoryEvent[] = [];
  readonly guarded: HistoryEvent[] = [];
  readonly faults: Call[] = [];
  readonly ends: HistoryEvent[] = [];
  readonly kills = new Map<string, number>();
  readonly open: Call[] = [];
  readonly #openOfProc = new Map<string, Call[]>();
  readonly #openFaults = new Map<string, Call>();

  constructor(events: readonly HistoryEvent[]) {
    this.events = events;
  }

  run(): Trace {
    let last: HistoryEvent | undefined;
    for (const [at, event] of this.events.entries()) {
      if (event.i !== at) throw new HistoryError(`event ${at}: found event ${event.i} in its place`);
      if (last !== undefined && event.t < last.t) throw wrong(event, "time went back");
      this.#read(event);
      last = event;
    }
    for (const attempt of this.attempts.values()) {
      if (attempt.call.end === null) this.open.push(attempt.call);
      for (const call of attempt.open) this.open.push(call);
    }
    for (const calls of this.#openOfProc.values()) for (const call of calls) this.open.push(call);
    settleValidity(this);
    return this;
  }

  #read(event: HistoryEvent): void {
    switch (event.f) {
      case "acquire":
      case "try":
        return event.type === "invoke" ? this.#ask(event) : this.#answer(event);
      case "renew":
        return this.#renew(event);
      case "release":
        return this.#release(event);
      case "evict": {
        const attempt = this.#attemptOf(event);
        const call = join(attempt.open, event);
        if (call !== null) attempt.evictions.push(call);
        attempt.lock.seized = true;
        return;
      }
      case "write":
        return this.#collect(event, this.writes);
      case "read":
        return this.#collect(event, this.reads);
      case "query":
        return this.#query(event);
      case "fault":
        return this.#fault(event);
      case "lost":
        single(event);
        return leave(this.#attemptOf(event), event);
      case "held":
        single(event);
        this.#attemptOf(event);
        this.held.push(event);
        return;
      case "cancel":
        single(event);
        this.#attemptOf(event);
        return;
      case "guard":
        single(event);
        this.guarded.push(event);
        return;
      case "end":
        single(event);
        this.ends.push(event);
    }
  }

  #ask(event: HistoryEvent): void {
    const id = event.attempt;
    if (id === undefined) throw wrong(event, "it names no attempt");
    if (this.attempts.has(id)) throw wrong(event, `attempt ${JSON.stringify(id)} was used before`);
    const lock = this.#lockOf(event);
    if (event.steal === true) lock.seized = true;
    const behind = event.behind === undefined ? null : this.attempts.get(event.behind);
    if (behind === undefined || (behind !== null && behind.lock !== lock)) {
      throw wrong(event, "what it is behind is not known on this lock");
    }
    const attempt: Attempt = {
      id,
      lock,
      owner: event.owner ?? event.proc,
      call: { invoke: event, end: null },
      floor: lock.highest,
      behind,
      grant: null,
      leaver: null,
      releases: [],
      evictions: [],
      open: [],
    };
    this.attempts.set(id, attempt);
    lock.attempts.push(attempt);
  }

  #answer(event: HistoryEvent): void {
    const attempt = this.#attemptOf(event);
    const { call, lock } = attempt;
    if (call.invoke.f !== event.f)
      throw wrong(event, `attempt ${JSON.stringify(attempt.id)} is not a ${event.f}`);
    if (call.end !== null) throw wrong(event, "the call had ended before");
    call.end = event;
    if (event.type !== "ok") return;
    if (event.busy === true) {
      if (event.f !== "try") throw wrong(event, "only a try can be answered busy");
      lock.answers += 1;
      return;
    }
    this.#grant(attempt, event);
  }

  #grant(attempt: Attempt, ok: HistoryEvent): void {
    const { call, lock } = attempt;
    const { invoke } = call;
    const parent = ok.parent === undefined ? null : this.attempts.get(ok.parent);
    if (parent === undefined) throw wrong(ok, "its parent is not known");
    const permits = invoke.permits ?? ok.permits;
    const grant: Grant = {
      attempt,
      proc: invoke.proc,
      token: ok.token,
      kind: permits === undefined ? (invoke.mode ?? ok.mode ?? "exclusive") : "counted",
      weight: invoke.weight ?? ok.weight ?? 1,
      permits: permits ?? 1,
      steal: invoke.steal === true,
      ok,
      parent,
      root: parent?.grant === null || parent === null ? null : rootOf(parent.grant),
      depth: 1,
      proof: ok,
      closer: attempt.leaver,
      believedEnd: Infinity,
      end: Infinity,
    };
    attempt.grant = grant;
    this.grants.push(grant);
    if (parent !== null) {
      if (attempt.leaver === null) rootOf(grant).depth += 1;
      return;
    }
    lock.grants.push(grant);
    if (grant.kind === "exclusive") lock.exclusive.push(grant);
    const highest = lock.highest?.token;
    if (grant.token !== undefined && (highest === undefined || grant.token > highest)) lock.highest = grant;
  }

  #renew(event: HistoryEvent): void {
    const attempt = this.#attemptOf(event);
    join(attempt.open, event);
    if (event.type !== "ok" || attempt.grant === null) return;
    const root = rootOf(attempt.grant);
    if (root.closer === null) root.proof = event;
  }

  #release(event: HistoryEvent): void {
    const attempt = this.#attemptOf(event);
    const call = join(attempt.open, event);
    if (call === null) return;
    attempt.releases.push(call);
    if (isOwner(attempt, event)) leave(attempt, event);
  }

  #query(event: HistoryEvent): void {
    const lock = this.#lockOf(event);
    this.#collect(event, lock.queries);
    if (event.type === "ok") lock.answers += 1;
  }

  #fault(event: HistoryEvent): void {
    const key = JSON.stringify([event.fault, event.target]);
    if (event.type === "info") {
      this.faults.push({ invoke: event, end: event });
      if (event.fault === "kill" && event.target !== undefined && !this.kills.has(event.target)) {
        this.kills.set(event.target, event.i);
      }
    } else if (event.type === "invoke") {
      if (this.#openFaults.has(key)) throw wrong(event, "the same fault is under way");
      const fault: Call = { invoke: event, end: null };
      this.#openFaults.set(key, fault);
      this.faults.push(fault);
    } else {
      const fault = this.#openFaults.get(key);
      if (fault === undefined) throw wrong(event, "no such fault is under way");
      fault.end = event;
      this.#openFaults.delete(key);
    }
  }

  #collect(event: HistoryEvent, into: Call[]): void {
    const call = join(
      event.attempt === undefined ? this.#openOf(event.proc) : this.#attemptOf(event).open,
      event,
    );
    if (call !== null) into.push(call);
  }

  #openOf(proc: string): Call[] {
    let open = this.#openOfProc.get(proc);
    if (open === undefined) this.#openOfProc.set(proc, (open = []));
    return open;
  }

  #attemptOf(event: HistoryEvent): Attempt {
    const attempt = event.attempt === undefined ? undefined : this.attempts.get(event.attempt);
    if (attempt === undefined) throw wrong(event, "it names no attempt that was asked for");
    if (event.lock !== undefined && event.lock !== attempt.lock.name) {
      throw wrong(event, `attempt ${JSON.stringify(attempt.id)} is about another lock`);
    }
    return attempt;
  }

  #lockOf(event: HistoryEvent): LockTrace {
    const name = event.lock;
    if (name === undefined) throw wrong(event, "it names no lock");
    let lock = this.locks.get(name);
    if (lock === undefined) {
      lock = {
        name,
        attempts: [],
        grants: [],
        exclusive: [],
        queries: [],
        answers: 0,
        seized: false,
        highest: null,
      };
      this.locks.set(name, lock);
    }
    return lock;
  }
}

/** Notes that the owner left; the hold is over when nobody is inside any more, or when its root was lost. */
function leave(attempt: Attempt, event: HistoryEvent): void {
  if (attempt.leaver !== null) return;
  attempt.leaver = event;
  const grant = attempt.grant;
  if (grant === null) return;
  const root = rootOf(grant);
  root.depth -= 1;
  if (root.closer === null && (root.depth === 0 || (grant === root && event.f === "lost")))
    root.closer = event;
}
