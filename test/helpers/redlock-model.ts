/** A model of nodes that give tokens, and of two clients that want one lock on them: every order of their steps can be played. */

/** What a node has: whose value, with which number, whether that is a token; the largest token stored; its clock. */
export interface ModelNode {
  owner: number | null;
  number: number;
  isToken: boolean;
  counter: number;
  clock: number;
}

/** How the nodes behave: as they should, or with one mistake. */
export type Mistake =
  | "none"
  | "takes a proposal without looking"
  | "stores without looking"
  | "stores for anybody"
  | "counter dies with the lock"
  | "no quarantine";

/** How far above all that a node knows a proposal may be. */
const farthest = 1_000_000;

/** Phase one on a node: the number that it has if it is free or ours, the proposed one if it can; null if somebody else has it. */
export function take(
  node: ModelNode,
  owner: number,
  proposal: number,
  mistake: Mistake = "none",
): number | null {
  if (node.owner === owner) return node.number;
  if (node.owner !== null) return null;
  const counter = Math.max(mistake === "counter dies with the lock" ? 0 : node.counter, node.clock);
  node.owner = owner;
  node.isToken = proposal > counter && proposal <= counter + farthest;
  if (mistake === "takes a proposal without looking") node.isToken = proposal > 0;
  node.number = node.isToken ? proposal : counter;
  if (node.isToken) node.counter = Math.max(node.counter, proposal);
  return node.number;
}

/** Phase two on a node: whether it has the token now. */
export function store(node: ModelNode, owner: number, token: number, mistake: Mistake = "none"): boolean {
  if (node.owner !== owner && mistake !== "stores for anybody") return false;
  const knowsMore = node.number > token || (!node.isToken && node.number === token);
  if (knowsMore && mistake !== "stores without looking") return false;
  node.number = token;
  node.isToken = true;
  node.counter = Math.max(node.counter, token);
  return true;
}

/** Letting go on a node: whether it was ours. */
export function letGo(node: ModelNode, owner: number): boolean {
  if (node.owner !== owner) return false;
  node.owner = null;
  return true;
}

/** How far a client has come with a node. */
const [untouched, asked, tokenSent, left] = [0, 1, 2, 3];

/** A node, and what the two clients have done with it and were answered in phase one: -1 is a no; and whether it was a token. */
interface Column {
  readonly node: ModelNode;
  readonly reached: [number, number];
  readonly answer: [number, number];
  readonly gotToken: [boolean, boolean];
}

interface ModelClient {
  readonly proposal: number;
  /** 0 until phase one is decided. */
  token: number;
  stored: number;
  /** Whether the other client had completed before this one began. */
  after: boolean;
  complete: boolean;
}

interface World {
  readonly columns: readonly Column[];
  readonly clients: readonly [ModelClient, ModelClient];
  /** How many things may still happen to the nodes. */
  events: number;
}

const nodeCount = 3;
const quorum = 2;

function begin(events: number, proposals: readonly [number, number]): World {
  const columns = Array.from({ length: nodeCount }, (): Column => {
    const node = { owner: null, number: 0, isToken: false, counter: 0, clock: 1 };
    return { node, reached: [untouched, untouched], answer: [-1, -1], gotToken: [false, false] };
  });
  const client = { token: 0, stored: 0, after: false, complete: false };
  const [first, second] = proposals;
  return {
    columns,
    clients: [
      { ...client, proposal: first },
      { ...client, proposal: second },
    ],
    events,
  };
}

function copy({ columns, clients, events }: World): World {
  return {
    columns: columns.map(({ node, reached, answer, gotToken }) => ({
      node: { ...node },
      reached: [...reached],
      answer: [...answer],
      gotToken: [...gotToken],
    })),
    clients: [{ ...clients[0] }, { ...clients[1] }],
    events,
  };
}

/** The same text for worlds that differ only in the order of their nodes. */
function keyOf({ columns, clients, events }: World): string {
  const texts = columns.map(({ node, reached, answer, gotToken }) => {
    const { owner, number, isToken, counter, clock } = node;
    const value = owner === null ? [0, 0, 0] : [owner + 1, number + 8, isToken ? 1 : 0];
    const answers = [answer[0] + 8, answer[1] + 8, gotToken[0] ? 1 : 0, gotToken[1] ? 1 : 0];
    return String.fromCharCode(...value, counter + 8, clock + 8, ...reached, ...answers);
  });
  const ends = clients.flatMap(({ proposal, token, stored, after, complete }) => [
    proposal,
    token + 8,
    stored,
    after ? 1 : 0,
    complete ? 1 : 0,
  ]);
  return texts.toSorted().join("") + String.fromCharCode(...ends, events);
}

/** Something that may happen next. */
interface Step {
  may(world: World): boolean;
  happen(world: World, mistake: Mistake): void;
}

function hasBegun({ columns }: World): boolean {
  return columns.some(({ reached }) => reached[0] !== untouched);
}

/** All that a client may ever do with a node, in phases. */
function stepsOf(c: 0 | 1, n: number): readonly Step[] {
  const at = ({ columns }: World): Column => {
    const column = columns[n];
    if (column === undefined) throw new Error("there is no such node");
    return column;
  };
  return [
    {
      // The clients are alike, so it is enough that the first begins.
      may: (world) => at(world).reached[c] === untouched && (c === 0 || hasBegun(world)),
      happen: (world, mistake) => {
        const { columns, clients } = world;
        const begins = columns.every(({ reached }) => reached[c] === untouched);
        if (begins) clients[c].after = clients[c === 0 ? 1 : 0].complete;
        const { node, answer, reached, gotToken } = at(world);
        answer[c] = take(node, c, clients[c].proposal, mistake) ?? -1;
        gotToken[c] = answer[c] >= 0 && node.isToken;
        reached[c] = asked;
      },
    },
    {
      // Decides by the answers of the other two; that of this one was not heard, if there was one.
      may: ({ columns, clients }) =>
        clients[c].token === 0 && columns.every(({ answer }, other) => other === n || answer[c] >= 0),
      happen: ({ columns, clients }) => {
        const heard = columns.filter((_, other) => other !== n);
        const client = clients[c];
        if (heard.every(({ gotToken }) => gotToken[c])) {
          // All of them took what was proposed: there is no phase two.
          client.token = client.proposal;
          client.complete = true;
          for (const { reached } of columns) if (reached[c] === asked) reached[c] = tokenSent;
        } else client.token = Math.max(...heard.map(({ answer }) => answer[c])) + 1;
        for (const { answer, gotToken } of columns) {
          answer[c] = -1;
          gotToken[c] = false;
        }
      },
    },
    {
      may: (world) => world.clients[c].token !== 0 && at(world).reached[c] === asked,
      happen: (world, mistake) => {
        const client = world.clients[c];
        if (store(at(world).node, c, client.token, mistake)) client.stored += 1;
        if (client.stored === quorum) client.complete = true;
        at(world).reached[c] = tokenSent;
      },
    },
    {
      may: (world) => world.clients[c].complete && at(world).reached[c] === tokenSent,
      happen: (world) => {
        letGo(at(world).node, c);
        at(world).reached[c] = left;
      },
    },
  ];
}

/** What may happen to a node at any moment. */
const happenings: Readonly<Record<Happening, (node: ModelNode, world: World, mistake: Mistake) => void>> = {
  // By its ttl, or by a clock that jumps forward.
  expiry: (node) => {
    node.owner = null;
  },
  // Without its data. It counts again when its clock has passed all that it may have known.
  restart: (node, { clients }, mistake) => {
    Object.assign(node, { owner: null, counter: 0 });
    const known = clients.flatMap(({ token, proposal }) => [token, proposal]);
    if (mistake !== "no quarantine") node.clock = Math.max(node.clock, ...known);
  },
  "clock forward": (node) => {
    node.clock += 2;
  },
  "clock back": (node) => {
    node.clock -= 2;
  },
};

/** What may happen to a node. */
export type Happening = "expiry" | "restart" | "clock forward" | "clock back";

function happeningOf(name: Happening, n: number): Step {
  return {
    may: ({ events, columns }) => events > 0 && (name !== "expiry" || columns[n]?.node.owner !== null),
    happen: (world, mistake) => {
      const column = world.columns[n];
      if (column !== undefined) happenings[name](column.node, world, mistake);
      world.events -= 1;
    },
  };
}

/** What is wrong with the tokens of a world; null if nothing is. */
function wrong({ clients: [a, b] }: World): string | null {
  if (!a.complete || !b.complete) return null;
  if (a.token === b.token) return `both have the token ${a.token}`;
  if (a.after && a.token < b.token) return `${a.token} was granted after ${b.token}`;
  if (b.after && b.token < a.token) return `${b.token} was granted after ${a.token}`;
  return null;
}

/** What a search has found. */
export interface Found {
  readonly states: number;
  /** Of them, those in which both clients have been granted. */
  readonly both: number;
  /** The first violation. */
  readonly violation: string | null;
}

/** Plays all orders of all steps with each pair of proposals, and so many happenings of these kinds, until something is wrong. */
export function playAll(
  events: number,
  kinds: readonly Happening[],
  proposals: readonly (readonly [number, number])[],
  mistake: Mistake = "none",
): Found {
  let [states, both] = [0, 0];
  for (const pair of proposals) {
    const found = playPair(events, kinds, pair, mistake);
    states += found.states;
    both += found.both;
    if (found.violation !== null) return { states, both, violation: found.violation };
  }
  return { states, both, violation: null };
}

function playPair(
  events: number,
  kinds: readonly Happening[],
  proposals: readonly [number, number],
  mistake: Mistake,
): Found {
  const nodes = Array.from({ length: nodeCount }, (_, n) => n);
  const steps = nodes.flatMap((n) => [
    ...stepsOf(0, n),
    ...stepsOf(1, n),
    ...kinds.map((kind) => happeningOf(kind, n)),
  ]);
  const first = begin(events, proposals);
  const seen = new Set([keyOf(first)]);
  const open: World[] = [first];
  let both = 0;
  for (let world = open.pop(); world !== undefined; world = open.pop()) {
    const violation = wrong(world);
    if (violation !== null) return { states: seen.size, both, violation };
    // What comes after both grants changes no token.
    if (world.clients.every(({ complete }) => complete)) both += 1;
    else for (const step of steps) if (step.may(world)) visit(step, world);
  }
  return { states: seen.size, both, violation: null };

  function visit(step: Step, world: World): void {
    const next = copy(world);
    step.happen(next, mistake);
    const key = keyOf(next);
    if (seen.has(key)) return;
    seen.add(key);
    open.push(next);
  }
}
