/** Clocks of servers that tests can set. */
import { ClockShim } from "../../src/verify/servers/clock-shim.ts";

/** So many clocks, each for a server of its own. */
export async function makeClocks(count: number): Promise<readonly ClockShim[]> {
  const built = await Promise.all(Array.from({ length: count }, () => ClockShim.build()));
  return built.map((clock) => {
    if (clock !== null) return clock;
    throw new Error("a clock that can be set needs Linux and a C compiler: apt-get install gcc libc6-dev");
  });
}
