/** What `holdfast doctor` wants to know of an etcd cluster: its members, their versions and clocks, alarms, size. */
import type { Finding } from "../../core/backend.ts";
import type { Calls } from "./calls.ts";
import { alarmType, type Member, type StatusResponse } from "./client/messages/cluster.ts";
import * as methods from "./client/methods.ts";

/** A bug of etcd that concerns locks, and the first version of each line without it. */
interface KnownBug {
  readonly about: string;
  readonly fixedIn: readonly string[];
}

/** From etcd's changelogs. A line that is not named never had the bug, or never got the fix if it is older than all. */
const knownBugs: readonly KnownBug[] = [
  {
    about: "a leader whose disk is stuck revokes leases that are alive, and answers keep-alives of others",
    fixedIn: ["3.4.31", "3.5.13"],
  },
  { about: "a watch loses events after a compaction", fixedIn: ["3.4.31", "3.5.13"] },
  { about: "a watch lacks a delete at the compacted revision", fixedIn: ["3.4.36", "3.5.18"] },
  { about: "a keep-alive succeeds on a lease that was revoked", fixedIn: ["3.4.38", "3.5.23", "3.6.5"] },
];

/** Below this version the backend lacks what it needs. */
const oldestVersion = "3.4.0";
/** What etcd's database may have unless it is told otherwise, in bytes. */
const usualQuota = 2 * 1024 ** 3;

/** Looks at a cluster without changing it. */
export async function examine(calls: Calls): Promise<readonly Finding[]> {
  const { members } = await calls.read("listing the members", methods.memberList, {});
  const { alarms } = await calls.read("listing alarms", methods.alarm, {});
  const answers = await Promise.all(calls.client.endpoints.map((endpoint) => lookAt(calls, endpoint)));
  const statuses = answers.flatMap((answer) => ("status" in answer ? [answer.status] : []));
  return [
    ...membership(members),
    ...answers.flatMap((answer) => ("status" in answer ? ofMember(answer) : [answer])),
    ...leadership(statuses),
    ...alarms
      .filter(({ alarm }) => alarm !== alarmType.none)
      .map(({ memberId, alarm }): Finding => ofAlarm(memberId, alarm)),
    ...(alarms.length === 0 ? [ok("alarms", "none")] : []),
    ok("clocks", "the leader's monotonic clock ends leases: steps of wall clocks do not"),
    ...(members.length > 1
      ? [ok("frozen leaders", "one may end leases that are alive: let resources check tokens")]
      : []),
  ];
}

type Looked = Finding | { readonly endpoint: string; readonly status: StatusResponse };

async function lookAt(calls: Calls, endpoint: string): Promise<Looked> {
  try {
    const status = await calls.client.callMember(endpoint, methods.memberStatus, {});
    return { endpoint, status };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return warning(`member ${endpoint}`, why, "start it, or take it out of the list of endpoints");
  }
}

function membership(members: readonly Member[]): readonly Finding[] {
  const voters = members.filter(({ isLearner }) => !isLearner).length;
  const seen = members.map(({ name, id }) => (name === "" ? id.toString(16) : name)).join(", ");
  if (voters === 1)
    return [
      warning(
        "members",
        `one: ${seen}`,
        "without a majority of three or more, the death of one member is an outage",
      ),
    ];
  if (voters % 2 === 0)
    return [warning("members", `${voters}: ${seen}`, "an even number survives no more faults than one less")];
  return [ok("members", `${voters}: ${seen}`)];
}

function ofMember({ endpoint, status }: { endpoint: string; status: StatusResponse }): readonly Finding[] {
  const { version, dbSize, dbSizeInUse, errors, leader } = status;
  const about = `member ${endpoint}`;
  const findings: Finding[] = [...ofVersion(about, version)];
  if (leader === 0n)
    findings.push(problem(about, "it knows no leader", "check the network between the members"));
  for (const error of errors) findings.push(problem(about, error, "see etcdctl endpoint status"));
  const share = Number(dbSize) / usualQuota;
  const size = `${megabytes(dbSize)} MB, ${megabytes(dbSizeInUse)} MB in use`;
  if (share > 0.8)
    findings.push(
      warning(`${about}, size`, size, "compact and defragment before the quota (2 GB by default) is reached"),
    );
  else findings.push(ok(`${about}, size`, size));
  return findings;
}

function ofVersion(about: string, version: string): readonly Finding[] {
  if (isBefore(version, oldestVersion)) {
    return [problem(`${about}, version`, version, `run ${oldestVersion} or later`)];
  }
  const bugs = knownBugs.filter(({ fixedIn }) => hasBug(version, fixedIn));
  if (bugs.length === 0) return [ok(`${about}, version`, version)];
  return bugs.map(({ about: bug, fixedIn }) =>
    warning(`${about}, version`, `${version}: ${bug}`, `run ${fixedIn.join(" or ")} or later`),
  );
}

/** Whether a version comes before the fix in its own line; lines without a fix are taken to come after it. */
export function hasBug(version: string, fixedIn: readonly string[]): boolean {
  const line = lineOf(version);
  const fix = fixedIn.find((each) => lineOf(each) === line);
  if (fix !== undefined) return isBefore(version, fix);
  return fixedIn.every((each) => isBefore(version, each));
}

function lineOf(version: string): string {
  return version.split(".").slice(0, 2).join(".");
}

function isBefore(a: string, b: string): boolean {
  const [left, right] = [a, b].map((version) => version.split(/[.+-]/).map(Number));
  for (const part of [0, 1, 2]) {
    const difference = (left?.[part] ?? 0) - (right?.[part] ?? 0);
    if (difference !== 0) return difference < 0;
  }
  return false;
}

function leadership(statuses: readonly StatusResponse[]): readonly Finding[] {
  const leaders = new Set(statuses.map(({ leader }) => leader).filter((leader) => leader !== 0n));
  if (leaders.size === 1)
    return [ok("leader", `all agree on ${[...leaders].map((id) => id.toString(16)).join()}`)];
  if (leaders.size === 0)
    return [problem("leader", "none", "a majority of the members must run and reach each other")];
  return [
    warning(
      "leader",
      "the members do not agree",
      "an election is under way, or the network is split: look again",
    ),
  ];
}

function ofAlarm(memberId: bigint, alarm: number): Finding {
  const about = `alarm of member ${memberId.toString(16)}`;
  if (alarm === alarmType.noSpace) {
    return problem(
      about,
      "NOSPACE: nobody can take a lock",
      "compact, defragment, then etcdctl alarm disarm",
    );
  }
  return problem(
    about,
    alarm === alarmType.corrupt ? "CORRUPT: its data differ" : `${alarm}`,
    "replace the member",
  );
}

function megabytes(bytes: bigint): string {
  return (Number(bytes) / 1024 ** 2).toFixed(1);
}

function ok(about: string, seen: string): Finding {
  return { level: "ok", about, seen };
}

function warning(about: string, seen: string, todo: string): Finding {
  return { level: "warning", about, seen, todo };
}

function problem(about: string, seen: string, todo: string): Finding {
  return { level: "problem", about, seen, todo };
}
