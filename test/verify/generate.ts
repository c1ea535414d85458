/**
 * Correct histories by the thousand: clients that lock, renew, lose, release, cancel, steal and die over a toy store,
 * with answers that come late or never. Whatever it generates must be valid.
 */
import { History, type HistoryEvent, type NewEvent } from "../../src/verify/history.ts";
import { seeded, type Random } from "./random.ts";
import { ToyStore, type ToyEntry } from "./toy-store.ts";

const TTL = 50_000_000n;
const PERMITS = 3;

interface Request {
  readonly id: string;
  readonly proc: string;
  readonly lock: string;
  readonly f: "acquire" | "try";
  readonly steal: boolean;
  readonly weight: number;
  stage: "sent" | "waits" | "busy" | "holds" | "leaving" | "removed" | "done";
  entry: ToyEntry | null;
  sentAt: bigint;
  validUntil: bigint;
  /** When a renewal that is under way was sent, and how the store answered it. */
  renewal: { readonly sentAt: bigint; answer: "none" | "renewed" | "gone" } | null;
  released: boolean;
}

export interface GenerateOptions {
  readonly requests?: number;
  readonly procs?: number;
  readonly locks?: readonly string[];
  /** Whether locks are stolen and entries evicted. */
  readonly seize?: boolean;
  readonly kill?: boolean;
}

/** A history that keeps every invariant, the same for the same seed. */
export function generateHistory(seed: number, options: GenerateOptions = {}): readonly HistoryEvent[] {
  return new Run(seeded(seed), options).run();
}

class Run {
  readonly #random: Random;
  readonly #options: GenerateOptions;
  readonly #history: History;
  readonly #store = new ToyStore(PERMITS);
  readonly #requests: Request[] = [];
  readonly #dead = new Set<string>();
  readonly #written: string[] = [];
  readonly #highest = new Map<string, bigint>();
  #now = 1_000n;

  constructor(random: Random, options: GenerateOptions) {
    this.#random = random;
    this.#options = options;
    this.#history = new History({ now: () => this.#now });
  }

  run(): readonly HistoryEvent[] {
    const total = this.#options.requests ?? 12;
    while (this.#requests.length < total && this.#dead.size < (this.#options.procs ?? 4)) {
      this.#pass();
      if (this.#random.chance(0.2)) this.#ask();
      else this.#act();
    }
    while (this.#requests.some((request) => this.#isLive(request))) {
      this.#pass();
      this.#act();
    }
    this.#record({ proc: "checker", f: "read", type: "invoke", resource: "r" });
    this.#record({ proc: "checker", f: "read", type: "ok", resource: "r", values: this.#written });
    this.#record({ proc: "checker", f: "end", type: "ok", leaks: { entries: 0 }, pending: 0 });
    return this.#history.events;
  }

  /** Often no time passes at all, so that events of one moment are met too. */
  #pass(): void {
    if (this.#random.chance(0.6)) this.#now += BigInt(this.#random.below(6_000_000));
  }

  #record(event: NewEvent): void {
    this.#history.record(event);
  }

  #isLive({ stage, proc }: Request): boolean {
    return stage !== "done" && !this.#dead.has(proc);
  }

  #ask(): void {
    const random = this.#random;
    const proc = `c${random.below(this.#options.procs ?? 4)}`;
    if (this.#dead.has(proc)) return;
    const lock = random.pick(this.#options.locks ?? ["exclusive", "shared", "counted"]);
    const request: Request = {
      id: `a${this.#requests.length}`,
      proc,
      lock,
      f: random.chance(0.3) ? "try" : "acquire",
      steal: this.#options.seize === true && random.chance(0.2),
      weight: lock === "counted" ? 1 + random.below(PERMITS) : 1,
      stage: "sent",
      entry: null,
      sentAt: this.#now,
      validUntil: 0n,
      renewal: null,
      released: false,
    };
    if (request.steal && request.f === "try") return;
    this.#requests.push(request);
    const shared = lock === "shared" && random.chance(0.6);
    this.#record({
      proc,
      f: request.f,
      type: "invoke",
      lock,
      attempt: request.id,
      ttl: Number(TTL) / 1e6,
      ...(shared && { mode: "shared" }),
      ...(lock === "counted" && { weight: request.weight, permits: PERMITS }),
      ...(request.steal && { steal: true }),
    });
    this.#kinds.set(request, lock === "counted" ? "counted" : shared ? "shared" : "exclusive");
  }

  readonly #kinds = new Map<Request, ToyEntry["kind"]>();

  #act(): void {
    if (this.#random.chance(0.15)) this.#store.expireOne(this.#now);
    if (this.#random.chance(0.05)) this.#query();
    if (this.#options.kill === true && this.#random.chance(0.01)) this.#kill();
    const live = this.#requests.filter((request) => this.#isLive(request));
    if (live.length > 0) this.#step(this.#random.pick(live));
  }

  #step(request: Request): void {
    switch (request.stage) {
      case "sent":
        return this.#arrive(request);
      case "busy":
        request.stage = "done";
        return this.#answer(request, { type: "ok", busy: true });
      case "waits":
        return this.#wait(request);
      case "holds":
        return this.#hold(request);
      case "leaving":
        request.released = request.entry !== null && this.#store.remove(request.lock, request.entry);
        request.stage = "removed";
        return;
      case "removed":
        request.stage = "done";
        return this.#about(
          request,
          "release",
          this.#random.chance(0.1) ? "info" : request.released ? "ok" : "fail",
        );
      default:
    }
  }

  /** The request reaches the store. */
  #arrive(request: Request): void {
    const { lock, weight } = request;
    const entry = this.#store.append(lock, this.#kinds.get(request) ?? "exclusive", weight, this.#now + TTL);
    request.entry = entry;
    request.stage = "waits";
    if (request.steal) this.#store.clearAhead(lock, entry);
    if (request.f === "try" && !this.#store.granted(lock, entry)) {
      this.#store.remove(lock, entry);
      request.stage = "busy";
    }
  }

  #wait(request: Request): void {
    const { lock, entry } = request;
    if (entry === null) return;
    if (request.f === "acquire" && this.#random.chance(0.05)) {
      this.#about(request, "cancel", "info");
      this.#answer(request, { type: "fail" });
      return this.#leave(request);
    }
    if (!this.#store.has(lock, entry) || this.#now >= request.sentAt + TTL) {
      // Expired or displaced while waiting: a request joins again at the tail, a try cannot tell what became of it.
      if (request.f === "acquire") {
        this.#store.remove(lock, entry);
        request.sentAt = this.#now;
        return this.#arrive(request);
      }
      request.stage = "done";
      return this.#answer(request, { type: "info" });
    }
    if (this.#random.chance(0.3)) {
      request.sentAt = this.#now;
      entry.expiresAt = this.#now + TTL;
    }
    if (!this.#store.granted(lock, entry)) return;
    request.stage = "holds";
    request.validUntil = request.sentAt + TTL;
    this.#answer(request, { type: "ok", token: entry.seq, validUntil: request.validUntil });
  }

  #hold(request: Request): void {
    const { lock, entry, validUntil } = request;
    if (entry === null) return;
    if (request.renewal !== null && this.#random.chance(0.5)) return this.#renewed(request, entry);
    const dice = this.#random.below(10);
    if (this.#now >= validUntil && dice < 6) return this.#lose(request);
    if (dice < 2) {
      if (this.#now < validUntil) this.#about(request, "held", "ok");
    } else if (dice < 4) this.#write(request, entry.seq);
    else if (dice < 6) {
      if (request.renewal !== null) return;
      request.renewal = { sentAt: this.#now, answer: "none" };
      this.#about(request, "renew", "invoke");
    } else if (dice < 7) {
      if (this.#now < validUntil) this.#nest(request, entry.seq);
    } else if (dice < 8 && this.#options.seize === true && this.#random.chance(0.3)) {
      this.#record({ proc: "admin", f: "evict", type: "invoke", attempt: request.id });
      const gone = this.#store.remove(lock, entry);
      this.#record({ proc: "admin", f: "evict", type: gone ? "ok" : "fail", attempt: request.id });
    } else if (this.#random.chance(0.5)) this.#leave(request);
  }

  /** A renewal goes one step on: to the store, or back. */
  #renewed(request: Request, entry: ToyEntry): void {
    const { renewal, lock } = request;
    if (renewal === null) return;
    if (renewal.answer === "none") {
      renewal.answer = this.#store.has(lock, entry) ? "renewed" : "gone";
      if (renewal.answer === "renewed") entry.expiresAt = this.#now + TTL;
      return;
    }
    request.renewal = null;
    if (this.#random.chance(0.15)) return this.#about(request, "renew", "info");
    if (renewal.answer === "gone") {
      this.#about(request, "renew", "fail");
      return this.#lose(request);
    }
    request.validUntil = renewal.sentAt + TTL;
    this.#record({
      proc: request.proc,
      f: "renew",
      type: "ok",
      attempt: request.id,
      validUntil: request.validUntil,
    });
  }

  /** The holder stops; sometimes it still releases, and may be told that there was nothing left. */
  #lose(request: Request): void {
    this.#about(request, "lost", "info");
    if (this.#random.chance(0.5)) return this.#leave(request);
    this.#endRenewal(request);
    request.stage = "done";
  }

  #leave(request: Request): void {
    this.#endRenewal(request);
    request.stage = "leaving";
    this.#about(request, "release", "invoke");
  }

  #endRenewal(request: Request): void {
    if (request.renewal !== null) this.#about(request, "renew", "info");
    request.renewal = null;
  }

  /** Writes go on after the lock is over, as those of a paused client do; the resource refuses the stale ones. */
  #write(request: Request, token: bigint): void {
    const { id, proc, lock } = request;
    const value = `v${this.#history.events.length}`;
    const about = { attempt: id, resource: "r", value };
    this.#record({ proc, f: "write", type: "invoke", ...about });
    const accepted = token >= (this.#highest.get(lock) ?? 0n);
    if (accepted) {
      this.#highest.set(lock, token);
      this.#written.push(value);
    }
    const type = accepted ? "ok" : "fail";
    this.#record({ proc: "store", f: "guard", type, lock, token });
    this.#record({ proc, f: "write", type: this.#random.chance(0.1) ? "info" : type, ...about });
  }

  #nest(request: Request, token: bigint): void {
    const { id, proc, lock } = request;
    const nested = `${id}/${this.#history.events.length}`;
    this.#record({ proc, f: "acquire", type: "invoke", lock, attempt: nested });
    this.#record({ proc, f: "acquire", type: "ok", attempt: nested, parent: id, token });
    this.#record({ proc, f: "held", type: "ok", attempt: nested });
    this.#record({ proc, f: "release", type: "invoke", attempt: nested });
    this.#record({ proc, f: "release", type: "ok", attempt: nested });
  }

  #query(): void {
    const lock = this.#random.pick(this.#options.locks ?? ["exclusive", "shared", "counted"]);
    this.#record({ proc: "observer", f: "query", type: "invoke", lock });
    this.#record({ proc: "observer", f: "query", type: "ok", lock, ...this.#store.list(lock) });
  }

  #kill(): void {
    const proc = `c${this.#random.below(this.#options.procs ?? 4)}`;
    if (this.#dead.has(proc)) return;
    this.#dead.add(proc);
    this.#record({ proc: "nemesis", f: "fault", type: "info", fault: "kill", target: proc });
  }

  #answer(request: Request, answer: Omit<NewEvent, "proc" | "f">): void {
    this.#record({ proc: request.proc, f: request.f, attempt: request.id, ...answer });
  }

  #about(request: Request, f: NewEvent["f"], type: NewEvent["type"]): void {
    this.#record({ proc: request.proc, f, type, attempt: request.id });
  }
}
