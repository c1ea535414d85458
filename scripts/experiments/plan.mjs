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
 * @property {readonly string[]} servers whose versions are told
 * @property {(context: import("./report.mjs").Context) => Promise<readonly import("./report.mjs").Row[]>} run
 */

/** @type {readonly Experiment[]} */
export const experiments = [
  {
    id: "a1",
    title: "the paused holder",
    question:
      "C1 holds a lock on Redis and is stopped (SIGSTOP) inside its section for longer than the ttl. C2 gets the lock and writes. C1 goes on and writes.",
    expected: "Without a fence every library loses C2's write, ours too: no lock can prevent it.",
    servers: ["redis"],
    run: a1,
  },
  {
    id: "a2",
    title: "the paused holder, fenced",
    question: "The same, and the resource compares tokens.",
    expected: "Every late write is refused, and no other.",
    servers: ["redis"],
    run: a2,
  },
  {
    id: "a3",
    title: "the blocked event loop",
    question: "As a1, but C1 is busy in a loop of its own instead of stopped, with its watchdog on or off.",
    expected: "A watchdog does not help: it is blocked, too.",
    servers: ["redis"],
    run: a3,
  },
  {
    id: "a4",
    title: "the answer that waits in the socket",
    question:
      "C1 is stopped between its request and the answer; its ttl passes, C2 is granted, C1 goes on and reads an answer that says yes.",
    expected:
      "Who counts from before the request refuses it. Who does not gives its caller a lock that another holds: an expired grant.",
    servers: ["redis"],
    run: a4,
  },
  {
    id: "b1",
    title: "fail-over of Redis with a lagging replica",
    question:
      "The link to the replica is cut, C1 is granted by the primary, the primary is killed, the replica is promoted, C2 asks while C1 believes.",
    expected: "Both hold: Redis confirms before it replicates. The fence holds all the same.",
    servers: ["redis"],
    run: b1,
  },
  {
    id: "b2",
    title: "fail-over of Redis with a link that works",
    question: "The same without the cut.",
    expected: "The race is rare when nothing else is wrong, which is why it is found at night.",
    servers: ["redis"],
    run: b2,
  },
  {
    id: "b3",
    title: "fail-over of Redis with confirmation by the replica",
    question:
      "b1 with `replicas=1`: an entry that the replica has not confirmed within 100 ms is taken back.",
    expected: "C1 is refused, so that nobody holds twice. It costs a round trip between the servers.",
    servers: ["redis"],
    run: b3,
  },
  {
    id: "c",
    title: "Redlock and clocks that jump",
    question: "C1 holds h of five servers; the clocks of j of these jump by a minute; C2 asks.",
    expected: "Two hold if and only if (5 − h) + j ≥ 3.",
    servers: ["redis"],
    run: c,
  },
  {
    id: "d",
    title: "Redlock and servers that forget",
    question: "C1 holds h of five servers; j of these are killed and come back at once; C2 asks.",
    expected:
      "The same law without persistence; none with `appendfsync always`. Our quarantine of servers that have just started is switched off here: with it they do not vote, and nobody holds twice.",
    servers: ["redis"],
    run: d,
  },
  {
    id: "e1",
    title: "the paused holder on etcd",
    question: "As a1 and a2 on three etcd members.",
    expected: "The lock moves on when the lease is over; the fence refuses the late write.",
    servers: ["etcd"],
    run: e1,
  },
  {
    id: "e2",
    title: "the paused holder on ZooKeeper",
    question: "The same on an ensemble of three.",
    expected: "The same.",
    servers: ["zookeeper"],
    run: e2,
  },
  {
    id: "e3",
    title: "lost updates on etcd",
    question:
      "Jepsen's lock-set: five clients read a set, think, and write it back under one lock, blindly, while one after the other is stopped for longer than the ttl.",
    expected:
      "Jepsen lost about 18 % of the acknowledged updates on etcd 3.4.3 with longer thoughts. The fence loses none.",
    servers: ["etcd"],
    run: e3,
  },
  {
    id: "e4",
    title: "an etcd leader that stands still",
    question: "The leader is stopped for longer than the ttl while one client holds and another waits.",
    expected:
      "Losses are told. When it goes on, this leader may end leases that are alive (etcd issue 15247, fixed in 3.4.31).",
    servers: ["etcd"],
    run: e4,
  },
  {
    id: "f",
    title: "tokens of PostgreSQL over a crash",
    question:
      "A sequence is asked in a transaction that is rolled back, and then twice more; a row is counted up twice; a lock is taken. Then the server crashes.",
    expected:
      "The sequence gives numbers again that it gave before; a committed row does not, and neither do our tokens.",
    servers: ["postgres"],
    run: f,
  },
];
