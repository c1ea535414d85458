/** The binary form of protocol buffers: numbers, bytes and tags. What a message consists of is left to codec.ts. */

/** How a field is written: the last three bits of its tag. */
export const wireType = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;

const numberBits = 7;
const highBit = 0x80;
/** A varint of so many bytes fits into a number without loss. */
const safeBytes = 7;

/** Most messages are not longer than this. */
const usualBytes = 512;

/** Collects the bytes of a message. */
export class Writer {
  #buffer: Buffer = Buffer.allocUnsafe(usualBytes);
  #length = 0;

  /** What was written so far. */
  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  tag(field: number, type: number): void {
    this.uint(field * 8 + type);
  }

  /** A whole number from 0 to 2^53. */
  uint(value: number): void {
    this.#reserve(10);
    let rest = value;
    while (rest >= highBit) {
      this.#buffer[this.#length++] = (rest % highBit) | highBit;
      rest = Math.floor(rest / highBit);
    }
    this.#buffer[this.#length++] = rest;
  }

  /** A number of 64 bits; a negative one is written as its two's complement. */
  int64(value: bigint): void {
    if (value >= 0n && value <= Number.MAX_SAFE_INTEGER) return this.uint(Number(value));
    this.#reserve(10);
    let rest = BigInt.asUintN(64, value);
    while (rest >= 0x80n) {
      this.#buffer[this.#length++] = Number(rest & 0x7fn) | highBit;
      rest >>= 7n;
    }
    this.#buffer[this.#length++] = Number(rest);
  }

  /** Bytes behind their length. */
  block(bytes: Uint8Array): void {
    this.uint(bytes.length);
    this.#reserve(bytes.length);
    this.#buffer.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  /** What `write` writes, behind its length. */
  within(write: () => void): void {
    this.#reserve(1);
    const start = ++this.#length;
    write();
    const bytes = this.#length - start;
    // Mostly the length has one byte, for which room was left; else what was written has to move.
    if (bytes >= highBit) {
      this.uint(bytes);
      const more = this.#length - start - bytes - 1;
      this.#buffer.copyWithin(start + more, start, start + bytes);
      this.#length = start - 1;
      this.uint(bytes);
      this.#length += bytes;
    } else {
      this.#buffer[start - 1] = bytes;
    }
  }

  text(value: string): void {
    const bytes = Buffer.byteLength(value);
    this.uint(bytes);
    this.#reserve(bytes);
    this.#length += this.#buffer.write(value, this.#length);
  }

  #reserve(bytes: number): void {
    const needed = this.#length + bytes;
    if (needed <= this.#buffer.length) return;
    const larger = Buffer.allocUnsafe(Math.max(needed, 2 * this.#buffer.length));
    this.#buffer.copy(larger, 0, 0, this.#length);
    this.#buffer = larger;
  }
}

/** Reads the bytes of a message from front to back; throws a RangeError where they end too early or make no sense. */
export class Reader {
  readonly #buffer: Buffer;
  #at = 0;

  constructor(buffer: Buffer) {
    this.#buffer = buffer;
  }

  get done(): boolean {
    return this.#at >= this.#buffer.length;
  }

  /** A number that must fit without loss. */
  uint(): number {
    // Tags and lengths are mostly one byte.
    const byte = this.#buffer[this.#at];
    if (byte !== undefined && byte < highBit) {
      this.#at += 1;
      return byte;
    }
    const value = this.uint64();
    if (value > Number.MAX_SAFE_INTEGER) throw new RangeError("a number is too large");
    return Number(value);
  }

  int64(): bigint {
    const value = this.uint64();
    return value >= 2n ** 63n ? BigInt.asIntN(64, value) : value;
  }

  uint64(): bigint {
    let value = 0;
    let scale = 1;
    for (let count = 0; count < safeBytes; count++) {
      const byte = this.#byte();
      value += (byte & (highBit - 1)) * scale;
      if (byte < highBit) return BigInt(value);
      scale *= highBit;
    }
    let large = BigInt(value);
    for (let shift = BigInt(safeBytes * numberBits); shift < 70n; shift += 7n) {
      const byte = this.#byte();
      large |= BigInt(byte & (highBit - 1)) << shift;
      if (byte < highBit) return BigInt.asUintN(64, large);
    }
    throw new RangeError("a number has too many bytes");
  }

  /** A view, not a copy. */
  block(): Buffer {
    const length = this.uint();
    const end = this.#at + length;
    if (end > this.#buffer.length) throw new RangeError("a message ends too early");
    const bytes = this.#buffer.subarray(this.#at, end);
    this.#at = end;
    return bytes;
  }

  /** Passes over a field that nobody knows. */
  skip(type: number): void {
    if (type === wireType.varint) this.uint64();
    else if (type === wireType.bytes) this.block();
    else if (type === wireType.fixed64) this.#at += 8;
    else if (type === wireType.fixed32) this.#at += 4;
    else throw new RangeError(`there is no wire type ${type}`);
    if (this.#at > this.#buffer.length) throw new RangeError("a message ends too early");
  }

  #byte(): number {
    const byte = this.#buffer[this.#at++];
    if (byte === undefined) throw new RangeError("a message ends too early");
    return byte;
  }
}
