// The main module of every run. It imports the capability by a computed URL,
// since only then does Deno check what the capability's module graph reads, and
// reports the returned value in a frame that starts with a nonce.
//
// Stdin holds "<nonce>\n<modules to load first, as a JSON list>\n<job as JSON>".
// The nonce stays in bytes, not in a string, and all that is used after an import
// is taken before it: a capability, and what it depends on, may replace any
// global and any prototype.
//
// The job may come much later than the first two lines: a process that is warm
// has loaded these modules by then.

type Job = { url: string; workspace: string; tmp: string; softMs: number; args: unknown };
type Context = { workspace: string; tmp: string; signal: AbortSignal };

const Bytes = Uint8Array;
const { apply } = Reflect;
const { parse, stringify } = JSON;
const exit = Deno.exit;
const MapType = Map;
const SetType = Set;
const ErrorType = Error;
const TypeErrorType = TypeError;
const { fromEntries } = Object;
const { isArray } = Array;
const { isFinite } = Number;
const { iterator } = Symbol;
const encoder = new TextEncoder();
const encode = encoder.encode;
const stdout = Deno.stdout;
const stderr = Deno.stderr;
const writeOut = stdout.writeSync;
const writeErr = stderr.writeSync;
const typedArray = Object.getPrototypeOf(Bytes.prototype);
const bufferOf = Object.getOwnPropertyDescriptor(typedArray, "buffer")!.get!;
const lengthOf = Object.getOwnPropertyDescriptor(typedArray, "length")!.get!;
const offsetOf = Object.getOwnPropertyDescriptor(typedArray, "byteOffset")!.get!;
const setBytes = typedArray.set;

const stdin = Deno.stdin;
const read = stdin.readSync;
const decoder = new TextDecoder();
const decode = decoder.decode;
const subarray = typedArray.subarray;
const indexOf = typedArray.indexOf;
const slice = typedArray.slice;
const now = performance.now;

let input = new Bytes(65536);
let filled = 0;

/** Reads more of stdin; false at its end. */
function more(): boolean {
  const n = apply(read, stdin, [apply(subarray, input, [filled])]);
  if (n === null) return false;
  filled += n;
  if (filled === apply(lengthOf, input, [])) {
    const grown = new Bytes(filled * 2);
    apply(setBytes, grown, [input]);
    input = grown;
  }
  return true;
}

/** The bytes up to the next line end, or all that is left. */
function line(from: number): Uint8Array {
  for (;;) {
    const end = apply(indexOf, input, [10, from]);
    if (end >= 0 && end < filled) return apply(slice, input, [from, end]);
    if (!more()) return apply(slice, input, [from, filled]);
  }
}

const nonce = line(0);
const modules = line(nonce.length + 1);
const jobAt = nonce.length + modules.length + 2;
for (const module of parse(apply(decode, decoder, [modules]))) {
  try {
    await import(module);
  } catch { /* the capability itself will see it */ }
}
while (more());
const job: Job = parse(apply(decode, decoder, [apply(subarray, input, [jobAt, filled])]));
const startedAt = apply(now, performance, []) as number;

/** Writes "\x1e<nonce><kind><text>\n"; Go's `frame` reads it. */
function frame(write: typeof writeOut, to: unknown, kind: string, text: string): void {
  const tail = apply(encode, encoder, [kind + text + "\n"]) as Uint8Array;
  const size = apply(lengthOf, nonce, []) as number;
  const bytes = new Bytes(1 + size + (apply(lengthOf, tail, []) as number));
  bytes[0] = 0x1e;
  apply(setBytes, bytes, [nonce, 1]);
  apply(setBytes, bytes, [tail, 1 + size]);
  writeAll(write, to, bytes);
}

function writeAll(write: typeof writeOut, to: unknown, bytes: Uint8Array): void {
  const buffer = apply(bufferOf, bytes, []);
  const start = apply(offsetOf, bytes, []) as number;
  const size = apply(lengthOf, bytes, []) as number;
  for (let n = 0; n < size;) {
    n += apply(write, to, [new Bytes(buffer, start + n, size - n)]) as number;
  }
}

/** Ends the run with a failure that is not an error of the capability's code. */
function fail(message: string): never {
  frame(writeErr, stderr, "E", "");
  writeAll(writeErr, stderr, apply(encode, encoder, [message + "\n"]) as Uint8Array);
  exit(1);
}

/** What JSON would lose without a word, or refuse, is written so that nothing is lost, or named. */
function plain(_key: string, value: unknown): unknown {
  if (value instanceof MapType) {
    const entries = [...value];
    return entries.every(([key]) => typeof key === "string") ? fromEntries(entries) : entries;
  }
  if (value instanceof SetType) return [...value];
  if (value instanceof ErrorType) throw value;
  if (typeof value === "bigint") throw new TypeErrorType("a BigInt is not JSON; return String(n) or Number(n)");
  if (typeof value === "function") throw new TypeErrorType("a function is not JSON; call it and return its result");
  if (typeof value === "number" && !isFinite(value)) throw new TypeErrorType(`${value} is not JSON`);
  if (typeof value === "object" && value !== null && !isArray(value) && iterator in value) {
    return [...value as Iterable<unknown>];
  }
  return value;
}

function report(value: unknown): void {
  let text: string | undefined;
  try {
    text = stringify(value, plain);
  } catch (error) {
    fail("the returned value cannot be written as JSON; return a plain object, array, text or number. " + String(error));
  }
  frame(writeOut, stdout, "V", text ?? "");
}

/**
 * A signal that aborts when a run of that age should come to its end. Made on
 * demand: the first touch of timers costs Deno about 10 ms.
 */
function abortAt(ageMs: number): AbortSignal {
  const controller = new AbortController();
  Deno.unrefTimer(setTimeout(() => controller.abort(), ageMs - (performance.now() - startedAt)));
  return controller.signal;
}

function define(name: string, value: unknown): void {
  Object.defineProperty(globalThis, name, {
    value,
    writable: true,
    configurable: true,
    enumerable: false,
  });
}

define("args", job.args);
define("__workspace", job.workspace);
let signal: AbortSignal | undefined;
const context: Context = {
  workspace: job.workspace,
  tmp: job.tmp,
  get signal() {
    return signal ??= abortAt(job.softMs);
  },
};
const given = job.args;
frame(writeOut, stdout, "S", "");

try {
  const main = (await import(job.url)).default;
  if (typeof main === "function") report(await apply(main, undefined, [given, context]));
} catch (error) {
  frame(writeErr, stderr, "E", "");
  throw error;
}
