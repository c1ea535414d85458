/** Names and texts: queues of different names never meet, and what people wrote comes back as it was. */
import assert from "node:assert/strict";
import { isBrowsable } from "../../core/backend.ts";
import { type ContractCase, caseOf } from "../case.ts";
import { at, granted, idsIn } from "../look.ts";
import type { Stage } from "../stage.ts";

const names = caseOf("names");

/** Puts an entry into each queue and checks that each holds its own, and only that; then empties them one by one. */
async function apart(t: Stage, queues: readonly string[]): Promise<void> {
  const client = await t.client();
  const ids: string[] = [];
  for (const queue of queues) {
    const said = await t.append(client, queue);
    assert.ok(granted(said), `${JSON.stringify(queue)} meets another name`);
    ids.push(said.self.id);
  }
  for (const [turn, queue] of queues.entries()) assert.deepEqual(await idsIn(client, queue), [ids[turn]]);
  for (const [turn, queue] of queues.entries()) {
    assert.equal(await client.remove(queue, at(ids, turn)), true);
    assert.deepEqual(await idsIn(client, queue), []);
    const next = queues[turn + 1];
    if (next !== undefined) assert.deepEqual(await idsIn(client, next), [ids[turn + 1]]);
  }
}

const longest = "n".repeat(510);

/** Cases about names and texts. */
export const namesCases: readonly ContractCase[] = [
  // Hazard 45.
  names("names that differ in case are different", [], (t) => apart(t, ["Job", "job", "JOB", "jOB"])),

  names("names that differ in their last character of 512 bytes are different", [], (t) =>
    apart(t, [`${longest}ab`, `${longest}ac`, `${longest}a`, longest, longest.slice(0, 64)]),
  ),

  names("names that start with one another are different", [], (t) =>
    apart(t, ["a", "aa", "a/", "a/b", "a/b/", "a:b", "a:", "a.b", "-semaphore/a"]),
  ),

  // Hazard 51.
  names("names with characters that stores treat specially are different", [], (t) =>
    apart(t, [
      ..."* ? [a] {a} {} % _ \\ ' \" ` ; -- $1 :1 @a #a & | < > ( ) ! ~ ^ = + ,"
        .split(" ")
        .map((c) => `x${c}`),
      "x",
      "x ",
      " x",
      "x\t",
      "x\n",
      "x\r\n",
      "../x",
      "/x",
      "//x",
      "x/../x",
      "%78",
      "x%%",
      "'; DROP TABLE x; --",
      "\u0001",
      "\u007f",
    ]),
  ),

  names("names of Unicode are different unless they are the same", [], (t) =>
    apart(t, [
      "é",
      "e\u0301",
      "e",
      "ß",
      "ss",
      "ı",
      "i",
      "İ",
      "日本",
      "日",
      "🔒",
      "🔓",
      "👩‍🚀",
      "👩",
      "\ufeffx",
      "ﬁ",
      "fi",
    ]),
  ),

  names("names of properties that every object has are names like others", [], (t) =>
    apart(t, [
      "__proto__",
      "constructor",
      "prototype",
      "toString",
      "hasOwnProperty",
      "null",
      "undefined",
      "0",
    ]),
  ),

  names("metadata of 4 KiB comes back as it was", [], async (t) => {
    const client = await t.client();
    const texts = [
      "",
      "plain",
      " \t spaced \n",
      "é\u0301 🔒 \"'\\ %s {} \n\t\u0001",
      "🔒".repeat(1024),
      "x".repeat(4096),
    ];
    for (const metadata of texts) {
      const queue = t.name();
      const { self } = await t.append(client, queue, { metadata });
      assert.equal(self.metadata, metadata);
      assert.equal(at(await client.list(queue), 0).metadata, metadata);
    }
    const queue = t.name();
    await t.append(client, queue);
    assert.equal(at(await client.list(queue), 0).metadata, undefined);
  }),

  names("the owner comes back as it was", [], async (t) => {
    const [a, b] = [await t.client(), await t.client()];
    const owners = [
      { client: "c", host: "h", pid: 1 },
      { client: "c:2|3", host: "höst.example", pid: 4_194_304, label: "rechnung „nacht“ 🌙" },
    ];
    for (const owner of owners) {
      const queue = t.name();
      await t.append(a, queue, { owner });
      const shown = at(await b.list(queue), 0).owner;
      assert.deepEqual({ label: undefined, ...shown }, { label: undefined, ...owner });
    }
  }),

  names("mode, weight and permits come back as they were", ["order", "shared", "counted"], async (t) => {
    const [a, b] = [await t.client(), await t.client()];
    const [lock, semaphore] = [t.name(), t.name()];
    await t.append(a, lock, { mode: "read" });
    await t.append(a, lock, { mode: "write" });
    await t.append(a, semaphore, { mode: "read", weight: 7, permits: 1_000_000 });
    const shown = [...(await b.list(lock)), ...(await b.list(semaphore))];
    assert.deepEqual(
      shown.map(({ mode, weight, permits }) => ({ mode, weight, permits })),
      [
        { mode: "read", weight: 1, permits: undefined },
        { mode: "write", weight: 1, permits: undefined },
        { mode: "read", weight: 7, permits: 1_000_000 },
      ],
    );
  }),

  names("queues gives the names that start with a prefix, and no others", ["browsing"], async (t) => {
    const client = await t.client();
    assert.ok(isBrowsable(client));
    const all = ["a", "a*", "a*b", "ab", "a%b", "a_b", "a[b]", "A*b", "ба", "b"];
    for (const queue of all) await t.append(client, queue);
    for (const prefix of ["", "a", "a*", "a%", "a_", "a[", "*", "б", "zzz"]) {
      const expected = all.filter((queue) => queue.startsWith(prefix));
      assert.deepEqual((await client.queues(prefix)).toSorted(), expected.toSorted(), `prefix ${prefix}`);
    }
  }),

  names("queues gives no queue that has become empty", ["browsing"], async (t) => {
    const [a, b] = [await t.client(), await t.client()];
    assert.ok(isBrowsable(b));
    const [left, expired, full] = [t.name(), t.name(), t.name()];
    const { self } = await t.append(a, left);
    await t.append(a, full);
    await t.append(await t.client(), expired, { ttlMs: t.pace.shortMs });
    await a.remove(left, self.id);
    await t.outliveShort();
    assert.deepEqual(await b.queues(""), [full]);
  }),
];
