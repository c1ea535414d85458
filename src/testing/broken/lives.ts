/** Backends whose entries live too long or too short, and whose renewals lie. */
import type { Entry, Renewed } from "../../core/backend.ts";
import { settle } from "../manual-clock.ts";
import { type Broken, brokenBy, showing, snapshotIn, viewed } from "./broken.ts";

const rank = ({ outcome }: Renewed): number => (outcome === "renewed" ? 0 : 1);

const longMs = 10 ** 9;

/** Broken expiry and renewal. */
export const brokenLives: readonly Broken[] = [
  brokenBy("entries expire by the clock of the client, which stands still", () => {
    const clientMs = 0;
    const until = new Map<string, number>();
    return (inner) => {
      const live = async (queue: string): Promise<readonly Entry[]> =>
        (await inner.list(queue)).filter(({ id }) => (until.get(id) ?? 0) > clientMs);
      return {
        append: async (queue, entry) => {
          const said = await inner.append(queue, { ...entry, ttlMs: longMs });
          if (said === null) return null;
          until.set(entry.id, clientMs + entry.ttlMs);
          return snapshotIn(await live(queue), viewed(said.self, { expiresInMs: entry.ttlMs }));
        },
        list: live,
      };
    };
  }),

  brokenBy("entries expire after half of their ttl", () => (inner) => ({
    append: (queue, entry) => inner.append(queue, { ...entry, ttlMs: entry.ttlMs / 2 }),
  })),

  brokenBy("a ttl beyond 2^31 ms wraps", () => (inner) => ({
    append: (queue, entry) => inner.append(queue, { ...entry, ttlMs: Math.max(1, entry.ttlMs | 0) }),
  })),

  brokenBy(
    "the remaining life is rounded up to ten seconds",
    () => (inner) =>
      showing(inner, (entry) =>
        viewed(entry, { expiresInMs: Math.ceil(entry.expiresInMs / 10_000) * 10_000 + 1 }),
      ),
  ),

  brokenBy("expired entries stay until somebody removes them", (clock) => {
    const until = new Map<string, number>();
    return (inner) => ({
      append: (queue, entry) => {
        if (!until.has(entry.id)) until.set(entry.id, clock.now() + entry.ttlMs);
        return inner.append(queue, { ...entry, ttlMs: longMs });
      },
      list: async (queue) =>
        (await inner.list(queue)).map((entry) =>
          viewed(entry, { expiresInMs: Math.max(0, (until.get(entry.id) ?? 0) - clock.now()) }),
        ),
    });
  }),

  brokenBy("an expired waiter in the middle keeps its place", () => {
    const ttls = new Set<string>();
    return (inner) => ({
      append: async (queue, entry) => {
        const middle = (await inner.list(queue)).length === 1;
        if (middle) ttls.add(entry.id);
        return inner.append(queue, ttls.has(entry.id) ? { ...entry, ttlMs: longMs } : entry);
      },
    });
  }),

  brokenBy("a renewal brings a removed entry back", () => {
    const known = new Map<string, Entry>();
    return (inner) => ({
      append: async (queue, entry) => {
        const said = await inner.append(queue, entry);
        if (said !== null) known.set(entry.id, viewed(said.self));
        return said;
      },
      renew: async (renewals) => {
        for (const { queue, id, ttlMs } of renewals) {
          const entry = known.get(id);
          if (entry !== undefined) await inner.append(queue, { ...entry, ttlMs });
        }
        return inner.renew(renewals);
      },
    });
  }),

  brokenBy("a renewal of what is gone is answered with renewed", () => (inner) => ({
    renew: async (renewals) => {
      const answers = await inner.renew(renewals);
      return answers.map((answer, turn): Renewed => {
        if (answer.outcome !== "gone" || answer.evicted === true) return answer;
        return { outcome: "renewed", expiresInMs: renewals[turn]?.ttlMs ?? 0 };
      });
    },
  })),

  brokenBy("a renewal does nothing", () => (inner) => ({
    renew: async (renewals) => {
      const answers = await inner.renew(renewals.map((renewal) => ({ ...renewal, ttlMs: 1 })));
      return answers.map((answer, turn): Renewed => {
        if (answer.outcome !== "renewed") return answer;
        return { outcome: "renewed", expiresInMs: renewals[turn]?.ttlMs ?? 0 };
      });
    },
  })),

  brokenBy("a renewal sends the entry to the tail", () => (inner) => ({
    renew: async (renewals) => {
      for (const { queue, id, ttlMs } of renewals) {
        const entry = (await inner.list(queue)).find((one) => one.id === id);
        if (entry !== undefined) await inner.remove(queue, id);
        if (entry !== undefined) await inner.append(queue, { ...entry, ttlMs });
      }
      return inner.renew(renewals);
    },
  })),

  brokenBy("a batch is answered with the renewed ones first", () => (inner) => ({
    renew: async (renewals) => {
      const answers = await inner.renew(renewals);
      return answers.toSorted((a, b) => rank(a) - rank(b));
    },
  })),

  brokenBy("a batch beyond 256 is cut", () => (inner) => ({
    renew: (renewals) => inner.renew(renewals.slice(0, 256)),
  })),

  brokenBy("an eviction is not told", () => (inner) => ({
    remove: (queue, id, _evict, seq) => inner.remove(queue, id, false, seq),
  })),

  brokenBy("of a renewal that is there twice one is answered with gone", () => (inner) => ({
    renew: async (renewals) => {
      const answers = await inner.renew(renewals);
      return answers.map((answer, turn): Renewed => {
        const before = renewals.slice(0, turn);
        return before.some(({ id }) => id === renewals[turn]?.id) ? { outcome: "gone" } : answer;
      });
    },
  })),

  brokenBy("a renewal that meets an eviction does not say so", () => {
    const evicted = new Set<string>();
    return (inner) => ({
      remove: (queue, id, evict, seq) => {
        if (evict) evicted.add(id);
        return inner.remove(queue, id, evict, seq);
      },
      renew: async (renewals) => {
        const known = new Set(evicted);
        await settle();
        const answers = await inner.renew(renewals);
        return answers.map((answer, turn): Renewed => {
          if (answer.outcome !== "gone" || known.has(renewals[turn]?.id ?? "")) return answer;
          return { outcome: "gone" };
        });
      },
    });
  }),

  brokenBy("each removal is told as an eviction", () => (inner) => ({
    remove: (queue, id, _evict, seq) => inner.remove(queue, id, true, seq),
  })),

  brokenBy("an eviction is told to everybody", () => {
    const listeners: Array<(queue: string, id: string) => void> = [];
    return (inner) => ({
      onEvicted: (listener) => {
        listeners.push(listener);
        inner.onEvicted?.((queue, id) => {
          for (const each of listeners) each(queue, id);
        });
      },
    });
  }),
];
