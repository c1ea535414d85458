/** When a command is ended: SIGTERM a grace before the deadline, SIGKILL before it, at once when the lock is lost. */
import { beforeEach, describe, expect, it } from "vitest";
import { type After, Guard } from "../../src/cli/run/guard.ts";

const plan = { graceMs: 200, reserveMs: 20 };

let now: number;
let deadline: number;
let timers: { at: number; callback: () => void }[];
let sent: string[];
let lost: AbortController;

const after: After = (ms, callback) => {
  const timer = { at: now + ms, callback };
  timers.push(timer);
  return () => {
    timers = timers.filter((other) => other !== timer);
  };
};

/** Lets time pass; `late` is how late timers fire, as if the process had been stopped. */
function pass(ms: number, late = 0): void {
  const end = now + ms;
  for (;;) {
    const next = timers.toSorted((one, other) => one.at - other.at)[0];
    if (next === undefined || next.at + late > end) break;
    now = Math.max(now, next.at + late);
    timers = timers.filter((other) => other !== next);
    next.callback();
  }
  now = end;
}

function guard(): Guard {
  const lock = {
    get validForMs() {
      return Math.max(0, deadline - now);
    },
    signal: lost.signal,
  };
  const record = (what: string): void => {
    sent.push(`${now} ${what}`);
  };
  return new Guard(lock, { signal: record }, plan, () => record("told"), after);
}

beforeEach(() => {
  now = 0;
  deadline = 1_000;
  timers = [];
  sent = [];
  lost = new AbortController();
});

describe("a lock that is not renewed", () => {
  it("gets SIGTERM a grace before, and SIGKILL a reserve before the deadline", () => {
    const watching = guard();
    pass(779);
    expect(watching.sent).toBeNull();
    pass(1);
    expect(watching.sent).toBe("SIGTERM");
    pass(5_000);
    expect(sent).toEqual(["780 SIGTERM", "780 told", "980 SIGKILL"]);
    expect(watching.sent).toBe("SIGKILL");
    expect(timers).toEqual([]);
  });

  it("gets SIGKILL alone where there is no time left", () => {
    guard();
    pass(2_000, 985);
    expect(sent).toEqual(["1485 SIGKILL"]);
  });

  it("gets SIGTERM at once, and SIGKILL in time, where less than the grace is left", () => {
    deadline = 100;
    guard();
    pass(500);
    expect(sent).toEqual(["0 SIGTERM", "0 told", "80 SIGKILL"]);
  });
});

describe("a lock that is renewed", () => {
  it("is left in peace", () => {
    guard();
    for (let round = 0; round < 50; round++) {
      pass(300);
      deadline = now + 1_000;
    }
    expect(sent).toEqual([]);
    expect(timers).toHaveLength(1);
  });

  it("after SIGTERM does not save the command from SIGKILL", () => {
    guard();
    pass(790);
    deadline = 10_000;
    pass(1_000);
    expect(sent).toEqual(["780 SIGTERM", "780 told", "980 SIGKILL"]);
  });
});

describe("a lock that is lost", () => {
  it("costs the command its life at once", () => {
    guard();
    pass(100);
    lost.abort();
    expect(sent).toEqual(["100 SIGKILL"]);
    pass(5_000);
    expect(sent).toHaveLength(1);
  });

  it("cuts the grace short", () => {
    guard();
    pass(800);
    lost.abort();
    expect(sent).toEqual(["780 SIGTERM", "780 told", "800 SIGKILL"]);
  });

  it("by the look itself is told once", () => {
    // As a Lock does: to ask it is what makes the loss known.
    const lock = {
      get validForMs() {
        if (now >= deadline) lost.abort();
        return Math.max(0, deadline - now);
      },
      signal: lost.signal,
    };
    const watching = new Guard(lock, { signal: (name) => sent.push(name) }, plan, () => {}, after);
    now = 2_000;
    watching.check();
    expect(sent).toEqual(["SIGKILL"]);
  });

  it("before the guard stands is seen", () => {
    lost.abort();
    guard();
    expect(sent).toEqual(["0 SIGKILL"]);
  });
});

it("looks at the lock at least every half second, since timers do not count a suspension", () => {
  deadline = 3_600_000;
  guard();
  pass(400);
  // The machine sleeps: the clock of the lock goes on, the timers do not.
  deadline = now;
  pass(100);
  expect(sent).toEqual(["500 SIGKILL"]);
});

it("does what is due when it is told that the process went on after a stop", () => {
  const watching = guard();
  now = 1_500;
  watching.check();
  expect(sent).toEqual(["1500 SIGKILL"]);
  watching.check();
  expect(sent).toHaveLength(1);
});

it("leaves nothing behind when it is stopped, and does nothing any more", () => {
  const watching = guard();
  watching.stop();
  expect(timers).toEqual([]);
  lost.abort();
  watching.check();
  expect(sent).toEqual([]);
});
