/** How gRPC puts messages into a stream: five bytes before each, and a status at the end. */

const prefixBytes = 5;

/** A message as it is sent. */
export function frame(message: Uint8Array): Buffer {
  const framed = Buffer.allocUnsafe(prefixBytes + message.length);
  framed[0] = 0;
  framed.writeUInt32BE(message.length, 1);
  framed.set(message, prefixBytes);
  return framed;
}

/** Cuts what arrives into messages. */
export class FrameReader {
  #chunks: Buffer[] = [];
  #length = 0;
  /** How many bytes the message that is arriving has in all; 0 while its prefix is not there yet. */
  #needed = 0;

  /** The messages that are complete with this chunk. Throws on a message that is compressed, which nobody asked for. */
  add(chunk: Buffer): Buffer[] {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    // Chunks of a long message are joined once, when all are there.
    if (this.#length < Math.max(prefixBytes, this.#needed)) return [];
    let rest = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks);
    const messages: Buffer[] = [];
    this.#needed = 0;
    while (rest.length >= prefixBytes) {
      if (rest[0] !== 0) throw new RangeError("a message is compressed");
      const end = prefixBytes + rest.readUInt32BE(1);
      if (rest.length < end) {
        this.#needed = end;
        break;
      }
      messages.push(rest.subarray(prefixBytes, end));
      rest = rest.subarray(end);
    }
    this.#chunks = rest.length > 0 ? [rest] : [];
    this.#length = rest.length;
    return messages;
  }
}

/** The text of a `grpc-message` header: percent-encoded, and shown as it is where it is not. */
export function decodeMessage(header: string): string {
  try {
    return decodeURIComponent(header);
  } catch {
    return header;
  }
}
