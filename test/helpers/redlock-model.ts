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
  /** All of this as text, once somebody has asked: worlds share the columns that are the same in them. */
  text: string | null;
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
  readonly columns: Column[];
  readonly clients: readonly [ModelClient, ModelClient];
  /** How many things may still happen to the nodes. */
  events: number;
}

const nodeCount = 3;
const quorum = 2;

function begin(events: number, proposals: readonly [number, number]): World {
  const columns = Array.from({ length: nodeCount }, (): Column => {
    const node = { owner: null, number: 0, isToken: false, counter: 0, clock: 1 };
    return { node, reached: [untouched, untouched], answer: [-1, -1], gotToken: [false, false], text: null };
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
  return { columns: [...columns], clients: [{ ...clients[0] }, { ...clients[1] }], events };
}

/** A column of a world that is about to change: from now on it has it alone. */
function change({ columns }: World, n: number): Column {
  const column = columnOf(columns, n);
  const { node, reached, answer, gotToken } = column;
  const own: Column = {
    node: { ...node },
    reached: [reached[0], reached[1]],
    answer: [answer[0], answer[1]],
    gotToken: [gotToken[0], gotToken[1]],
    text: null,
  };
  columns[n] = own;
  return own;
}

function columnOf(columns: readonly Column[], n: number): Column {
  const column = columns[n];
  if (column === undefined) throw new Error("there is no such node");
  return column;
}

function textOf({ node, reached, answer, gotToken }: Column): string {
  const { owner, number, isToken, counter, clock } = node;
  return String.fromCharCode(
    owner === null ? 0 : owner + 1,
    owner === null ? 0 : number + 8,
    owner !== null && isToken ? 1 : 0,
    counter + 8,
    clock + 8,
    reached[0] * 4 + reached[1],
    answer[0] + 8,
    answer[1] + 8,
    (gotToken[0] ? 2 : 0) + (gotToken[1] ? 1 : 0),
  );
}

/** The same text for worlds that differ only in the order of their nodes. */
function keyOf({ columns, clients, events }: World): string {
  const texts = columns.map((column) => (column.text ??= textOf(column)));
  let key = texts.toSorted().join("") + String.fromCharCode(events);
  for (const { token, stored, after, complete } of clients) {
    key += String.fromCharCode(token + 8, stored, (after ? 2 : 0) + (complete ? 1 : 0));
  }
  return key;
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
  const at = ({ columns }: World): Column => columnOf(columns, n);
  return [
    {
      // The clients are alike but for what they propose, and all pairs of proposals are played: it is enough that the first begins.
      may: (world) => at(world).reached[c] === untouched && (c === 0 || hasBegun(world)),
      happen: (world, mistake) => {
        const { columns, clients } = world;
        const begins = columns.every(({ reached }) => reached[c] === untouched);
        if (begins) clients[c].after = clients[c === 0 ? 1 : 0].complete;
        const { node, answer, reached, gotToken } = change(world, n);
        answer[c] = take(node, c, clients[c].proposal, mistake) ?? -1;
        gotToken[c] = answer[c] >= 0 && node.isToken;
        reached[c] = asked;
      },
    },
    {
      // Decides by the answers of the other two; that of this one was not heard, if there was one.
      may: ({ columns, clients }) =>
        clients[c].token === 0 && columns.every(({ answer }, other) => other === n || answer[c] >= 0),
      happen: (world) => {
        const heard = world.columns.filter((_, other) => other !== n);
        const client = world.clients[c];
        client.complete = heard.every(({ gotToken }) => gotToken[c]);
        client.token = client.complete
          ? client.proposal
          : Math.max(...heard.map(({ answer }) => answer[c])) + 1;
        world.columns.forEach((_, other) => {
          const { answer, gotToken, reached } = change(world, other);
          answer[c] = -1;
          gotToken[c] = false;
          // All of them took what was proposed: there is no phase two.
          if (client.complete && reached[c] === asked) reached[c] = tokenSent;
        });
      },
    },
    {
      may: (world) => world.clients[c].token !== 0 && at(world).reached[c] === asked,
      happen: (world, mistake) => {
        const client = world.clients[c];
        const { node, reached } = change(world, n);
        if (store(node, c, client.token, mistake)) client.stored += 1;
        if (client.stored === quorum) client.complete = true;
        reached[c] = tokenSent;
      },
    },
    {
      may: (world) => world.clients[c].complete && at(world).reached[c] === tokenSent,
      happen: (world) => {
        const { node, reached } = change(world, n);
        letGo(node, c);
        reached[c] = left;
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
      happenings[name](change(world, n).node, world, mistake);
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
