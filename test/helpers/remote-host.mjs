/** The child's side of remote-backend.ts: opens backends and makes the calls that arrive, in their order. */
const [, , address = "", factory = ""] = process.argv;
const { [factory]: open } = await import(address);

/** @type {Map<number, any>} */
const backends = new Map();
/** @type {Map<number, () => void>} */
const unwatch = new Map();
let opened = 0;

/** What is asked of a client that is not a call of the seam, or needs more than its arguments. */
const own = {
  open: async (/** @type {unknown} */ _backend, /** @type {any} */ request) => {
    const backend = await open(request.args[0]);
    backends.set(++opened, backend);
    return opened;
  },
  describe: async (/** @type {any} */ { name, traits }) => ({ name, traits }),
  watch: async (/** @type {any} */ backend, /** @type {any} */ { args, watch }) => {
    const onChange = (/** @type {unknown} */ fresh) => process.send?.({ watch, fresh });
    unwatch.set(watch, await backend.watch(...args, onChange));
  },
  unwatch: async (/** @type {unknown} */ _backend, /** @type {any} */ { args: [watch] }) => {
    unwatch.get(watch)?.();
    unwatch.delete(watch);
  },
  onEvicted: async (/** @type {any} */ backend, /** @type {any} */ { client }) =>
    backend.onEvicted((/** @type {string} */ queue, /** @type {string} */ id) =>
      process.send?.({ evicted: client, queue, id }),
    ),
};

process.on("message", async (/** @type {any} */ request) => {
  const { call, client, method, args } = request;
  const backend = backends.get(client);
  try {
    const answer = Object.hasOwn(own, method)
      ? Reflect.get(own, method)(backend, request)
      : backend[method](...args);
    process.send?.({ call, value: await answer });
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : null;
    process.send?.({ call, error: { code, message: String(error) } });
  }
});
