/** Backends that mix up names, or lose what people wrote. */
import { type Backend, type Browsable, type NewEntry } from "../../core/backend.ts";
import { LockError } from "../../core/errors.ts";
import { type Broken, brokenBy, type Changes, showing, viewed } from "./broken.ts";

/** Uses another name for each queue. */
function renaming(name: string, rename: (queue: string) => string): Broken {
  return brokenBy(name, () => (inner) => ({
    append: (queue, entry) => inner.append(rename(queue), entry),
    renew: (renewals) => inner.renew(renewals.map((one) => ({ ...one, queue: rename(one.queue) }))),
    remove: (queue, id, evict, seq) => inner.remove(rename(queue), id, evict, seq),
    list: (queue) => inner.list(rename(queue)),
    watch: (queue, self, target, onChange) => inner.watch(rename(queue), self, target, onChange),
  }));
}

/** Keeps entries with something changed. */
function rewriting(name: string, rewrite: (entry: NewEntry) => NewEntry): Broken {
  return brokenBy(name, () => (inner) => ({
    append: (queue, entry) => inner.append(queue, rewrite(entry)),
  }));
}

/** Names queues in another way. */
function browsing(
  name: string,
  queues: (inner: Backend & Browsable, prefix: string) => Promise<readonly string[]>,
): Broken {
  return brokenBy(name, () => (inner): Changes => ({ queues: (prefix) => queues(inner, prefix) }));
}

/** Broken names and broken texts. */
export const brokenNaming: readonly Broken[] = [
  renaming("names are lower-cased", (queue) => queue.toLowerCase()),
  renaming("names are cut at 64 characters", (queue) => queue.slice(0, 64)),
  renaming("names are trimmed", (queue) => queue.trim()),
  renaming("names are normalised", (queue) => queue.normalize("NFKC")),
  renaming("names are kept as ASCII", (queue) => queue.replaceAll(/[^ -~]/g, "?")),
  renaming("names are paths", (queue) => queue.replace(/^\/+/, "").replace(/\/+$/, "")),
  renaming("names end at a colon", (queue) => queue.split(":", 1)[0] ?? queue),
  renaming("semaphores stand with the locks", (queue) => queue.replace("-semaphore/", "")),

  brokenBy("names are properties of an object", () => (inner) => ({
    append: (queue, entry) => {
      if (queue in {}) throw new LockError("LOCK_UNAVAILABLE", `broken: cannot keep ${queue}`);
      return inner.append(queue, entry);
    },
  })),

  brokenBy("a listing has what starts with its name", () => (inner) => ({
    list: async (queue) => {
      const lists = await Promise.all((await inner.queues(queue)).map((each) => inner.list(each)));
      return lists.flat();
    },
  })),

  browsing("queues takes the prefix for a pattern", async (inner, prefix) => {
    const pattern = prefix
      .replaceAll(/[.+^${}()|\\[\]]/g, "\\$&")
      .replaceAll("*", ".*")
      .replaceAll("_", ".");
    return (await inner.queues("")).filter((queue) => new RegExp(`^${pattern}`).test(queue));
  }),

  brokenBy("queues remembers those that are empty", () => {
    const ever = new Set<string>();
    return (inner) => ({
      append: (queue, entry) => {
        ever.add(queue);
        return inner.append(queue, entry);
      },
      queues: async (prefix) => {
        await inner.queues(prefix);
        return [...ever].filter((queue) => queue.startsWith(prefix));
      },
    });
  }),

  rewriting("metadata is lost", (entry) => ({ ...entry, metadata: undefined })),
  rewriting("metadata is cut at 255 characters", (entry) => ({
    ...entry,
    metadata: entry.metadata?.slice(0, 255),
  })),
  rewriting("the owner's label is lost", (entry) => ({
    ...entry,
    owner: { ...entry.owner, label: undefined },
  })),
  rewriting("all owners are one", (entry) => ({ ...entry, owner: { client: "one", host: "h", pid: 0 } })),
  rewriting("every entry is a writer", (entry) => ({ ...entry, mode: "write" })),
  rewriting("every entry is a reader", (entry) => ({ ...entry, mode: "read" })),
  rewriting("every entry weighs one", (entry) => ({ ...entry, weight: 1 })),

  brokenBy(
    "permits are not shown",
    () => (inner) => showing(inner, (entry) => viewed(entry, { permits: undefined })),
  ),
];
