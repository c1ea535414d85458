/** The encoding of ZooKeeper's wire: integers in network order, text and bytes with their length before them. It knows no messages. */
import { MalformedFrame } from "./errors.ts";

const firstBytes = 1024;
/** A writer that has grown larger than this does not stay so. */
const keptBytes: number = 256 * 1024;

/** Writes messages one behind the other, each with its length in front. */
export class JuteWriter {
  #bytes: Buffer = Buffer.allocUnsafe(firstBytes);
  /** Where the message begins that is being written. */
  #start = 0;
  #end = 4;

  int(value: number): this {
    this.#room(4);
    this.#end = this.#bytes.writeInt32BE(value, this.#end);
    return this;
  }

  long(value: bigint): this {
    this.#room(8);
    this.#end = this.#bytes.writeBigInt64BE(value, this.#end);
    return this;
  }

  flag(value: boolean): this {
    this.#room(1);
    this.#end = this.#bytes.writeUInt8(value ? 1 : 0, this.#end);
    return this;
  }

  text(value: string): this {
    // A code unit takes three bytes at most.
    this.#room(4 + 3 * value.length);
    const length = this.#bytes.write(value, this.#end + 4, "utf8");
    this.#bytes.writeInt32BE(length, this.#end);
    this.#end += 4 + length;
    return this;
  }

  bytes(value: Uint8Array): this {
    this.int(value.length);
    this.#room(value.length);
    this.#bytes.set(value, this.#end);
    this.#end += value.length;
    return this;
  }

  list<T>(values: readonly T[], each: (value: T) => void): this {
    this.int(values.length);
    for (const value of values) each(value);
    return this;
  }

  /** Ends a message; what is written next is another one. */
  finish(): this {
    this.#bytes.writeInt32BE(this.#end - this.#start - 4, this.#start);
    this.#start = this.#end;
    this.#room(4);
    this.#end += 4;
    return this;
  }

  /** All messages that are finished; begins anew. */
  take(): Buffer {
    const messages = Buffer.allocUnsafe(this.#start);
    this.#bytes.copy(messages, 0, 0, this.#start);
    this.#start = 0;
    this.#end = 4;
    if (this.#bytes.length > keptBytes) this.#bytes = Buffer.allocUnsafe(firstBytes);
    return messages;
  }

  /** The one message that was written. */
  frame(): Buffer {
    return this.finish().take();
  }

  #room(count: number): void {
    if (this.#end + count <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(2 * this.#bytes.length + count);
    this.#bytes.copy(larger, 0, 0, this.#end);
    this.#bytes = larger;
  }
}

/** Reads one message; throws MalformedFrame where it ends too early or says something impossible. */
export class JuteReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** How many bytes have not been read yet. */
  get left(): number {
    return this.#bytes.length - this.#at;
  }

  int(): number {
    return this.#bytes.readInt32BE(this.#take(4));
  }

  long(): bigint {
    return this.#bytes.readBigInt64BE(this.#take(8));
  }

  flag(): boolean {
    return this.#bytes[this.#take(1)] !== 0;
  }

  text(): string {
    const length = this.#length();
    const from = this.#take(length);
    return this.#bytes.toString("utf8", from, from + length);
  }

  /** A copy, so that what is kept does not keep all that came with it. */
  bytes(): Buffer {
    const length = this.#length();
    const from = this.#take(length);
    return Buffer.from(this.#bytes.subarray(from, from + length));
  }

  list<T>(each: () => T): T[] {
    const count = this.#length();
    // Each item takes a byte at least: a count beyond that must not make us try.
    if (count > this.left) throw new MalformedFrame(`a list of ${count} items in ${this.left} bytes`);
    const items: T[] = [];
    for (let index = 0; index < count; index++) items.push(each());
    return items;
  }

  /** A length; null, which is written as -1, counts as empty. */
  #length(): number {
    const length = this.int();
    if (length < -1) throw new MalformedFrame(`a length of ${length}`);
    return Math.max(0, length);
  }

  #take(count: number): number {
    const from = this.#at;
    if (count > this.left) throw new MalformedFrame(`${count} bytes wanted, ${this.left} are left`);
    this.#at = from + count;
    return from;
  }
}
