/** Where the queue of a lock lies among ZooKeeper's nodes, and back from a node to the name; it asks no server. */
import { invalid } from "../../core/errors.ts";
import { parseNode } from "./nodes.ts";

/** How names of locks become paths. */
export type NameStyle = "encoded" | "paths";

/** The parents of a root, and where each queue lies below it. */
export interface Paths {
  /** Without a slash at its end; "" is the root of the tree. */
  readonly root: string;
  readonly style: NameStyle;
  of(queue: string): string;
  /** The name of the queue at a path, or null if it can have none. */
  nameAt(path: string): string | null;
}

/** Paths below a root, within a chroot if there is one: checked once. */
export function pathsBelow(root: string, style: NameStyle, chroot = ""): Paths {
  const within = root.replace(/\/+$/, "");
  const trimmed = chroot + within;
  for (const path of [within, trimmed]) if (path !== "") checkPath(path);
  const of = style === "encoded" ? encode : asPath;
  const nameOf = style === "encoded" ? decode : (path: string): string => path;
  return {
    root: trimmed,
    style,
    of: (queue) => `${trimmed}/${of(queue)}`,
    nameAt: (path) => nameOf(path.slice(trimmed.length + 1)),
  };
}

/** The nodes that must be there before a child of this path can be made, from the top. */
export function lineage(path: string): readonly string[] {
  const parts = path.split("/").slice(1);
  return parts.map((_, index) => `/${parts.slice(0, index + 1).join("/")}`);
}

/** One node for each name: what is not plainly allowed is written as its bytes in UTF-8, %41 for A. */
function encode(queue: string): string {
  // "" must have a node, too, and "%" alone is no other name's.
  if (queue === "") return "%";
  if (queue === "." || queue === "..") return queue.replaceAll(".", "%2E");
  return encodeURIComponent(queue);
}

function decode(node: string): string | null {
  if (node === "%") return "";
  try {
    const name = decodeURIComponent(node);
    // Only what encode writes: two nodes must never stand for one name.
    return encode(name) === node ? name : null;
  } catch {
    return null;
  }
}

/** A name that is a path: its slashes are levels of the tree. */
function asPath(queue: string): string {
  checkPath(`/${queue}`);
  const wrong = queue.split("/").find((part) => parseNode(part) !== null);
  if (wrong !== undefined)
    throw invalid(`lock ${JSON.stringify(queue)}: ${wrong} looks like an entry of a queue`);
  return queue;
}

// What ZooKeeper itself refuses.
const refused = /\/\/|\/$|\/\.{1,2}(?:\/|$)|[\p{Cc}\p{Cs}\p{Co}\ufff0-\uffff]|^(?!\/)|^\/zookeeper(?:\/|$)/u;

function checkPath(path: string): void {
  if (refused.test(path)) throw invalid(`not a path of ZooKeeper: ${JSON.stringify(path)}`);
}
