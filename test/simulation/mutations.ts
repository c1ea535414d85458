/** Ways to break the core and the memory backend, as patches of their built text; each text must be there exactly once. */

/** One small change that makes a lock unsafe or a wait endless. */
export interface Mutation {
  readonly name: string;
  readonly from: string;
  readonly to: string;
}

export const mutations: readonly Mutation[] = [
  {
    name: "a grant is believed from its answer on, not from before its request",
    from: "this.believe(sentAt, snapshot.self.expiresInMs)",
    to: "this.believe(this.client.clock.now(), snapshot.self.expiresInMs)",
  },
  {
    name: "a renewal is believed from its answer on",
    from: 'claim.renewed(answers[index] ?? { outcome: "unknown" }, sentAt)',
    to: 'claim.renewed(answers[index] ?? { outcome: "unknown" }, this.#clock.now())',
  },
  {
    name: "the margin is added instead of taken away",
    from: "sentAt + lifeMs - marginMs(lifeMs)",
    to: "sentAt + lifeMs + marginMs(lifeMs)",
  },
  {
    name: "a renewal without an answer counts as renewed",
    from: 'answers = claims.map(() => ({ outcome: "unknown", cause }))',
    to: 'answers = claims.map(({ wish }) => ({ outcome: "renewed", expiresInMs: wish.ttlMs }))',
  },
  {
    name: "a holder whose entry is gone goes on believing",
    from: 'this.lose(answer.evicted === true ? "evicted" : "gone")',
    to: "this.believe(sentAt, this.wish.ttlMs)",
  },
  {
    name: "an append that is answered after the caller gave up is not given back",
    from: "if (mayBeThere)\n            this.giveBack();",
    to: "",
  },
  {
    name: "a waiter that gives up stays in the queue",
    from: "if (!asking && (this.joined || this.mayBeThere))\n            this.giveBack();",
    to: "",
  },
  {
    name: "a grant that comes after a pause is not compared with the clock",
    from: "if (atOnce || this.client.clock.now() < this.validUntil)",
    to: "if (this.validUntil > 0)",
  },
  {
    name: "the progress of the wall clock is ignored",
    from: "if (step > slewMs)\n            jumped += step;",
    to: "",
  },
  {
    name: "waiters are not renewed",
    from: "return this.joined && !boundReached;",
    to: 'return this.joined && !boundReached && this.state !== "waiting";',
  },
  {
    name: "a waiter looks again only when it is told to",
    from: "this.lookAt = clock.recent() + blockedForMs + 1 + 10 * random();",
    to: "",
  },
  {
    name: "a late answer to an earlier question gives a held lock back",
    from: 'if (this.state === "ended")\n            return this.tooLate(snapshot !== null);',
    to: 'if (this.state !== "waiting")\n            return this.tooLate(snapshot !== null);',
  },
  {
    name: "an append without an answer holds up all later ones",
    from: "this.#ended(answer, patienceMs)",
    to: "answer.then(ignore, ignore)",
  },
  {
    name: "a thief does not wait until those ahead are evicted",
    from: "if (this.rule.grants(this.entry, snapshot.ahead))",
    to: "if (this.wish.steal || this.rule.grants(this.entry, snapshot.ahead))",
  },
  {
    name: "the end of validity is noticed only when somebody asks",
    from: "Math.min(this.renewAt, this.believedUntil())",
    to: "this.renewAt",
  },
  {
    name: "a section does not tell that its lock was lost",
    from: "const lost = lock.released || claim.held ? null : lock.lossError(claim.lostBecause);",
    to: "const lost = null;",
  },
  {
    name: "a reader does not wait for the writers ahead",
    from: "ahead.nearestWriter === null,",
    to: "ahead.nearestWriter === null || ahead.count > 1,",
  },
  {
    name: "the store takes out the first entry when it does not know the one to remove",
    from: "const entry = this.entries.get(id);\n        if (entry === undefined || entry.line.queue !== queue)",
    to: "const entry = this.entries.get(id) ?? this.lines.get(queue)?.first ?? undefined;\n        if (entry === undefined)",
  },
  {
    name: "a parallel branch enters a section at once",
    from: "await (givenUp === null ? before : Promise.race([before, givenUp]));",
    to: "await givenUp;",
  },
];
