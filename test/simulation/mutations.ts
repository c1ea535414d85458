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
    from: 'claim.renewed(answers[index] ?? { outcome: "unknown" }, sentAt, now)',
    to: 'claim.renewed(answers[index] ?? { outcome: "unknown" }, now, now)',
  },
  {
    name: "the margin is added instead of taken away",
    from: "sentAt + lifeMs - marginMs(lifeMs)",
    to: "sentAt + lifeMs + marginMs(lifeMs)",
  },
  {
    name: "a renewal without an answer counts as renewed",
    from: 'answers = renewals.map(() => ({ outcome: "unknown", cause }))',
    to: 'answers = renewals.map(({ ttlMs }) => ({ outcome: "renewed", expiresInMs: ttlMs }))',
  },
  {
    name: "of those that are renewed together all are believed if the first is renewed",
    from: "answers.every(isAlike)",
    to: "true",
  },
  {
    name: "those that are renewed together are believed for too long",
    from: "sentAt + expiresInMs - marginMs(expiresInMs)",
    to: "sentAt + expiresInMs + marginMs(expiresInMs)",
  },
  {
    name: "whoever is in company believes for as long as it did before",
    from: "this.company?.validUntil ?? this.validUntil",
    to: "this.validUntil",
  },
  {
    name: "a holder whose entry is gone goes on believing",
    from: 'this.lose(answer.evicted === true ? "evicted" : "gone")',
    to: "this.believe(sentAt, this.wish.ttlMs)",
  },
  {
    name: "an append that is answered after the caller gave up is not given back",
    from: "if (mayBeThere && (this.lossCause === null || this.hasLeft))\n            this.giveBack();",
    to: "",
  },
  {
    name: "a waiter that gives up stays in the queue",
    from: "if (!asking && ",
    to: "if (false && ",
  },
  {
    name: "a grant that comes after a pause is not compared with the clock",
    from: "< this.validUntil)\n                this.grant(now);",
    to: "< Infinity)\n                this.grant(now);",
  },
  {
    name: "the progress of the wall clock is ignored",
    from: "jumped += step;",
    to: "jumped += 0;",
  },
  {
    name: "waiters are not renewed",
    from: "return this.joined && ",
    to: 'return this.state !== "waiting" && this.joined && ',
  },
  {
    name: "a waiter looks again only when it is told to",
    from: "clock.recent() + blockedForMs + 1 + 10 * random()",
    to: "never",
  },
  {
    name: "a late answer to an earlier question gives a held lock back",
    from: 'if (this.state === "ended")\n            return this.tooLate(snapshot !== null);',
    to: 'if (this.state !== "waiting")\n            return this.tooLate(snapshot !== null);',
  },
  {
    name: "a lock is handed to an entry that may have expired",
    from: " && this.client.clock.now() < this.validUntil;",
    to: ";",
  },
  {
    name: "a reader hands its lock to the writer behind it, whoever else reads",
    from: "if (heir === undefined || this.rule !== exclusive)",
    to: "if (heir === undefined)",
  },
  {
    name: "a thief does not wait until those ahead are evicted",
    from: ".grants(this.wish, snapshot.ahead))",
    to: ".grants(this.wish, snapshot.ahead) || this.wish.steal)",
  },
  {
    name: "the end of validity is noticed only when somebody asks",
    from: "Math.min(this.renewAt, this.believedUntil())",
    to: "this.renewAt",
  },
  {
    name: "a section does not tell that its lock was lost",
    from: "if (claim.lostBecause === null)",
    to: "if (true)",
  },
  {
    name: "a reader does not wait for the writers ahead",
    from: "ahead.nearestWriter === null,",
    to: "ahead.nearestWriter === null || ahead.count > 1,",
  },
  {
    name: "the store takes out whoever is first, not whoever leaves",
    from: "remove(queue, id, evict, seq) {",
    to: "remove(queue, id, evict, seq) {\n        id = this.lines.get(queue)?.first?.id ?? id;",
  },
  {
    name: "a parallel branch enters a section at once",
    from: "await (givenUp === null ? before : Promise.race([before, givenUp]));",
    to: "await givenUp;",
  },
];
