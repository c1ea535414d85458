/** The experiments in their order: what each asks, what is expected, and what does it. */
import { e1, e2, e3, e4 } from "./consensus.mjs";
import { b1, b2, b3 } from "./failover.mjs";
import { a1, a2, a3, a4 } from "./pauses.mjs";
import { c, d } from "./quorum.mjs";
import { f } from "./tokens.mjs";

/**
 * @typedef {object} Experiment
 * @property {string} id
 * @property {string} title
 * @property {string} question
 * @property {string} expected
 * @property {readonly string[]} parts servers and libraries of others, whose versions are told
 * @property {(context: import("./report.mjs").Context) => Promise<readonly import("./report.mjs").Row[]>} run
 */

/** @type {readonly Experiment[]} */
export const experiments = [
  {
    id: "a1",
    title: "the paused holder",
    question:
      "C1 holds a lock on Redis and is stopped (SIGSTOP) for 2.5 s inside its section, longer than the ttl. C2 gets the lock and writes. C1 goes on and writes.",
    expected:
      "Without a fence every library loses C2's write, ours too: no lock can prevent it. The others have no tokens that a fence could compare.",
    parts: ["redis", "redlock@5", "redis-semaphore"],
    run: a1,
  },
  {
    id: "a2",
    title: "the paused holder, fenced",
    question: "The same once more, for what a resource does that compares tokens.",
    expected: "Every late write is refused, and no other.",
    parts: ["redis"],
    run: a2,
  },
  {
    id: "a3",
    title: "the blocked event loop",
    question: "As a1, but C1 blocks its event loop instead of being stopped, with its watchdog on or off.",
    expected: "A watchdog does not help: it is blocked, too.",
    parts: ["redis", "redlock@5", "redis-semaphore"],
    run: a3,
  },
  {
    id: "a4",
    title: "the answer that waits in the socket",
    question:
      "C1 is stopped between its request and the answer; its ttl passes, C2 is granted, C1 goes on and reads an answer that says yes.",
    expected:
      "Who counts from before the request refuses it. Who does not gives its caller a lock that another holds: an expired grant.",
    parts: ["redis", "redlock@5", "redis-semaphore"],
    run: a4,
  },
  {
    id: "b1",
    title: "fail-over of Redis with a lagging replica",
    question:
      "The link to the replica is cut, C1 is granted by the primary, the primary is killed, the replica is promoted, C2 asks while C1 believes.",
    expected: "Both hold: Redis confirms before it replicates. The fence holds all the same.",
    parts: ["redis"],
    run: b1,
  },
  {
    id: "b2",
    title: "fail-over of Redis with a link that works",
    question: "The same without the cut.",
    expected: "The race is rare when nothing else is wrong, which is why it is found at night.",
    parts: ["redis"],
    run: b2,
  },
  {
    id: "b3",
    title: "fail-over of Redis with confirmation by the replica",
    question:
      "b1 with `replicas=1`: an entry that no replica has confirmed within 100 ms is taken back (WAIT). Then the same after the link has healed: C1 is refused, asks again, and the primary dies. Then with two replicas: one confirms, the other is promoted behind a partition, and when that heals, all follow the new primary, where C2 asks.",
    expected:
      "While the link is cut C1 is refused (and C2, too, as long as there is no replica), and once it has healed C1's entry is on the replica: nobody holds twice. It costs a round trip between the servers. But a replica that has confirmed need not be the one that is promoted: then both hold until C1 renews, and is told. WAIT narrows the gap and does not close it; the fence does.",
    parts: ["redis"],
    run: b3,
  },
  {
    id: "c",
    title: "Redlock and clocks that jump",
    question: "C1 holds h of five servers; the clocks of j of these jump by a minute; C2 asks.",
    expected:
      "Two hold if and only if (5 − h) + j ≥ 3, and C2 gets the three that it needs. A round begins when C1 holds h servers and no other.",
    parts: ["redis", "redlock@5"],
    run: c,
  },
  {
    id: "d",
    title: "Redlock and servers that forget",
    question:
      "C1 holds h of five servers; j of these are killed and come back at once, or after the ttl has passed; C2 asks.",
    expected:
      "The same law without persistence; none with `appendfsync always`, and none if servers stay away for longer than the ttl. That has its price: as long as a majority is away, nobody gets any lock, as the last column shows (p50 / most). Our clients do the waiting themselves: servers that have just started do not vote for a while (quarantine, switched off in the other rows).",
    parts: ["redis", "redlock@5"],
    run: d,
  },
  {
    id: "e1",
    title: "the paused holder on etcd",
    question:
      "As a1 and a2 on three etcd members, C1 stopped for 5 s. Both also write to the same etcd, in a transaction that compares the create revision of the lock's key (`ownershipGuard`).",
    expected:
      "The lock moves on when the lease is over; the fence refuses the late write, and so does etcd itself.",
    parts: ["etcd"],
    run: e1,
  },
  {
    id: "e2",
    title: "the paused holder on ZooKeeper",
    question: "As a1 and a2 on an ensemble of three, C1 stopped for 10 s. The token is the czxid.",
    expected: "The same.",
    parts: ["zookeeper"],
    run: e2,
  },
  {
    id: "e3",
    title: "lost updates on etcd",
    question:
      "Jepsen's lock-set: five clients read a set, think for up to 2 s, and write it back under one lock, blindly, while every 5 s one of them is stopped for 4 s. A round is an update.",
    expected: "Jepsen lost about 18 % of the acknowledged updates on etcd 3.4.3. The fence loses none.",
    parts: ["etcd"],
    run: e3,
  },
  {
    id: "e4",
    title: "an etcd leader that stands still",
    question:
      "The leader is stopped for longer than the ttl while C1 holds and C2 waits; then both write, C1 only if its library says that it holds.",
    expected:
      "Losses are told. When it goes on, this leader may end leases that are alive (etcd issue 15247; its changelog calls it fixed in 3.4.31 and 3.5.13, but 3.5.30 still does it). Then two may believe for a moment: in these rounds C1 heard of each loss before C2 was granted, but [a longer look](backends/etcd.md#guarantees-and-limits), also at leaders that are cut off, has counterexamples.",
    parts: ["etcd"],
    run: e4,
  },
  {
    id: "f",
    title: "tokens of PostgreSQL over a crash",
    question:
      "A sequence is asked in a transaction that is rolled back, and then twice more; a row is counted up twice; a lock is taken. Then the server crashes.",
    expected:
      "The sequence gives numbers again that it gave before; a committed row does not, and neither do our tokens.",
    parts: ["postgres"],
    run: f,
  },
];
