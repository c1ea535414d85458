/** Finds the queues that servers have, by their keys; whether anybody is in them is left to the backend. */
import { nameOfKey, patternOf } from "./keys.ts";
import { asText, type Link } from "./link.ts";

/** The names with a start that keys with a prefix stand for, on all nodes; `inTime` bounds each command. */
export async function queuesIn(
  link: Link,
  prefix: string,
  start: string,
  inTime: <T>(command: Promise<T>) => Promise<T>,
): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  const pattern = patternOf(prefix, start);
  const nodes = (await inTime(link.sendToAll("PING", []))).length;
  for (let node = 0; node < nodes; node++) {
    let cursor = "0";
    do {
      const args = [cursor, "MATCH", pattern, "COUNT", "1000", "TYPE", "string"];
      const page = await inTime(link.sendTo(node, "SCAN", args));
      const [next, keys]: unknown[] = Array.isArray(page) ? page : [];
      cursor = asText(next ?? "0");
      for (const key of Array.isArray(keys) ? keys : []) {
        const queue = nameOfKey(prefix, asText(key));
        if (queue?.startsWith(start)) found.add(queue);
      }
    } while (cursor !== "0");
  }
  return found;
}
