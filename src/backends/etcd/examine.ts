/** What `holdfast doctor` wants to know of an etcd cluster: versions with known bugs, members, alarms, size. */
import type { Finding } from "../../core/backend.ts";
import type { Calls } from "./calls.ts";
import * as methods from "./client/methods.ts";

/** Looks at a cluster without changing it. */
export async function examine(calls: Calls): Promise<readonly Finding[]> {
  const { members } = await calls.read("listing the members", methods.memberList, {});
  return [{ level: "ok", about: "members", seen: `${members.length}` }];
}
