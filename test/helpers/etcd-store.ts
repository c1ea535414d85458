/** A fresh store for the contract on servers that are running: a prefix of its own, and a look at what is left on them. */
import { randomUUID } from "node:crypto";
import { type EtcdBackend, etcdBackend, type EtcdOptions } from "../../src/backends/etcd/index.ts";
import type { ContractStore } from "../../src/testing/index.ts";

/** Opens a store on the cluster with these endpoints. */
export async function etcdStore(
  endpoints: readonly string[],
  options: EtcdOptions = {},
): Promise<ContractStore & { readonly prefix: string }> {
  const prefix = `test/${randomUUID()}/`;
  const clients: EtcdBackend[] = [];
  const [first = ""] = endpoints;
  const leasesBefore = new Set(await leases(first));
  return {
    prefix,
    client: () => {
      const client = etcdBackend({ endpoints, prefix, ...options });
      clients.push(client);
      return client;
    },
    litter: async () => {
      const left = await keys(first, prefix);
      const open = await Promise.allSettled(clients.map((client) => client.list("open?")));
      // While a client is open it keeps its leases for what comes next.
      if (open.some(({ status }) => status === "fulfilled")) return left;
      const granted = (await leases(first)).filter((lease) => !leasesBefore.has(lease));
      return [...left, ...granted.map((lease) => `lease ${lease}`)];
    },
    close: async () => {
      await Promise.all(clients.map((client) => client.close()));
    },
  };
}

/** The ids of all leases of a cluster. */
export async function leases(endpoint: string): Promise<readonly string[]> {
  const answer = await ask(endpoint, "lease/leases", {});
  return [...answer.matchAll(/"ID":"(-?\d+)"/g)].map(([, id]) => id ?? "");
}

/** The keys that start so. */
export async function keys(endpoint: string, prefix: string): Promise<readonly string[]> {
  const base64 = (text: string): string => Buffer.from(text).toString("base64");
  const rangeEnd = prefix.replace(/.$/, (last) => String.fromCodePoint((last.codePointAt(0) ?? 0) + 1));
  const request = { key: base64(prefix), range_end: base64(rangeEnd), keys_only: true };
  const answer = await ask(endpoint, "kv/range", request);
  return [...answer.matchAll(/"key":"([^"]+)"/g)].map(([, key]) =>
    Buffer.from(key ?? "", "base64").toString(),
  );
}

/** Asks the JSON gateway of a server: another way than the one that is tested. */
export async function ask(endpoint: string, path: string, request: object): Promise<string> {
  const answer = await fetch(`${endpoint}/v3/${path}`, { method: "POST", body: JSON.stringify(request) });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`etcd answers ${path} with ${answer.status}: ${text}`);
  return text;
}
