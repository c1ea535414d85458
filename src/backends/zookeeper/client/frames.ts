/** Cuts the bytes of a connection into messages; what they mean is left to others. */
import { MalformedFrame } from "./errors.ts";

/** No message of a server is longer: the servers' own bound is 1 MiB, and may be raised a little. */
const longestFrame: number = 64 * 1024 * 1024;

/** Collects bytes and gives whole messages, without their lengths. */
export class FrameSplitter {
  #parts: Buffer[] = [];
  #held = 0;
  /** How many bytes are needed before there is anything to give. */
  #wanted = 4;

  /** Takes what has arrived and gives the messages that are complete now. Throws MalformedFrame on a length that cannot be. */
  push(chunk: Buffer): Buffer[] {
    this.#parts.push(chunk);
    this.#held += chunk.length;
    if (this.#held < this.#wanted) return [];
    const bytes = this.#parts.length === 1 ? chunk : Buffer.concat(this.#parts);
    const frames: Buffer[] = [];
    let at = 0;
    this.#wanted = 4;
    while (bytes.length - at >= 4) {
      const length = bytes.readInt32BE(at);
      if (length < 0 || length > longestFrame) throw new MalformedFrame(`a message of ${length} bytes`);
      if (bytes.length - at < 4 + length) {
        this.#wanted = 4 + length;
        break;
      }
      frames.push(bytes.subarray(at + 4, at + 4 + length));
      at += 4 + length;
    }
    this.#parts = at < bytes.length ? [bytes.subarray(at)] : [];
    this.#held = bytes.length - at;
    return frames;
  }
}
