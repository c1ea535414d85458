/** Fencing for Hono: a middleware, on whatever runtime Hono runs. Typed by what it uses of Hono. */
import { fencingHeader, gateOf, type HttpFenceOptions, problemType } from "../http.ts";

/** What is used of a context of Hono. */
export interface HonoContextLike {
  readonly req: {
    readonly method: string;
    header(name: string): string | undefined;
  };
}

/**
 * A middleware that lets in what the guard lets in. The turn of a request ends when what is behind it has given its
 * response: a handler's writes have to be written by then.
 */
export function honoFence<Context extends HonoContextLike = HonoContextLike>(
  options: HttpFenceOptions<Context>,
): (context: Context, next: () => Promise<void>) => Promise<Response | undefined> {
  const gate = gateOf(options);
  return async (context, next) => {
    const { method } = context.req;
    const problem = await gate({ request: context, method, header: context.req.header(fencingHeader) }, next);
    if (problem === null) return undefined;
    const headers = { "content-type": problemType };
    return new Response(JSON.stringify(problem), { status: problem.status, headers });
  };
}
