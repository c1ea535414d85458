/**
 * Messages described by tables of their fields, written and read by the same table. Numbers of 64 bits are bigints. Which
 * messages there are is left to ./messages.
 */
import { Reader, wireType, Writer } from "./wire.ts";

type Scalar = bigint | number | boolean | string | Uint8Array;

/** What may be given for a message: what is left out has its default, as in proto3; for bytes, text in UTF-8 will do. */
export type Init<T> = T extends Scalar | undefined
  ? T
  : T extends readonly (infer Item)[]
    ? readonly Init<Item>[]
    : { readonly [Key in keyof T]?: Init<T[Key]> | (T[Key] extends Uint8Array ? string : never) | undefined };

/** Writes and reads one kind of message. */
export interface Codec<T> {
  encode(value: T | Init<T>): Buffer;
  /** Writes what encode gives behind what has been written. */
  write(writer: Writer, value: T | Init<T>): void;
  /** Passes over fields that it does not know. Throws a RangeError on bytes that are no message. */
  decode(bytes: Buffer): T;
}

/** How a value is written, and what it is where its field is missing. */
interface Kind<T> {
  readonly type: number;
  readonly missing: T | undefined;
  write(writer: Writer, value: T): void;
  read(reader: Reader): T;
}

/** A field of a message. */
interface Field {
  readonly number: number;
  readonly kind: Kind<unknown>;
  /** Any number of them, as a list. */
  readonly many?: boolean;
  /** It may be missing, and is written even if it is zero: one of several, or a message. */
  readonly chosen?: boolean;
}

/** The field that a value of this type needs. */
type FieldFor<T> = [T] extends [readonly (infer Item)[]]
  ? { readonly number: number; readonly kind: Kind<Item>; readonly many: true }
  : { readonly number: number; readonly kind: Kind<T> };

type FieldsOf<T> = {
  readonly [Key in keyof T]-?: undefined extends T[Key]
    ? { readonly number: number; readonly kind: Kind<Exclude<T[Key], undefined>>; readonly chosen: true }
    : FieldFor<T[Key]>;
};

/** A signed number of 64 bits. */
export const int64: Kind<bigint> = {
  type: wireType.varint,
  missing: 0n,
  write: (writer, value) => writer.int64(value),
  read: (reader) => reader.int64(),
};

/** A number of 64 bits without a sign. */
export const uint64: Kind<bigint> = { ...int64, read: (reader) => reader.uint64() };

/** One of a few numbers that have names. */
export const choice: Kind<number> = {
  type: wireType.varint,
  missing: 0,
  write: (writer, value) => writer.uint(value),
  read: (reader) => reader.uint(),
};

/** True or false. */
export const flag: Kind<boolean> = {
  type: wireType.varint,
  missing: false,
  write: (writer, value) => writer.uint(value ? 1 : 0),
  read: (reader) => reader.uint() !== 0,
};

/** Bytes; what is read is a view of the whole message. */
export const bytes: Kind<Uint8Array> = {
  type: wireType.bytes,
  missing: Buffer.alloc(0),
  write: (writer, value: Uint8Array | string) =>
    typeof value === "string" ? writer.text(value) : writer.block(value),
  read: (reader) => reader.block(),
};

/** Text in UTF-8. */
export const text: Kind<string> = {
  type: wireType.bytes,
  missing: "",
  write: (writer, value) => writer.text(value),
  read: (reader) => reader.block().toString(),
};

/** A message within a message. Its codec is asked for when it is used: messages may contain each other. */
export function message<T>(codec: () => Codec<T>): Kind<T> {
  return {
    type: wireType.bytes,
    missing: undefined,
    write: (writer, value) => writer.within(() => codec().write(writer, value)),
    read: (reader) => codec().decode(reader.block()),
  };
}

/** A message with these fields. */
export function codecOf<T extends object>(fields: FieldsOf<T>): Codec<T> {
  const byName = new Map(Object.entries<Field>(fields));
  const byNumber = new Map([...byName].map(([name, field]) => [field.number, { name, ...field }]));
  const lists = [...byName].filter(([, { many }]) => many).map(([name]) => name);
  const blank = Object.fromEntries(
    [...byName].map(([name, { many, chosen, kind }]) => [name, many || chosen ? undefined : kind.missing]),
  );
  const write = (writer: Writer, value: object): void => {
    // What is given is most often a small part of all fields.
    const all: [string, unknown][] = Object.entries(value);
    for (const [name, given] of all) {
      const field = byName.get(name);
      if (given === undefined || field === undefined) continue;
      if (field.many) for (const each of list(given)) writeField(writer, field, each);
      else if (field.chosen || !isMissing(field, given)) writeField(writer, field, given);
    }
  };
  return {
    write,
    encode(value) {
      const writer = new Writer();
      write(writer, value);
      return writer.bytes;
    },
    decode(buffer) {
      const values: Record<string, unknown> = { ...blank };
      for (const name of lists) values[name] = [];
      const reader = new Reader(buffer);
      while (!reader.done) {
        const tag = reader.uint();
        const field = byNumber.get(tag >>> 3);
        if (field === undefined) reader.skip(tag & 7);
        else if (field.many) readMany(reader, field, tag & 7, list(values[field.name]));
        else values[field.name] = readOne(reader, field, tag & 7);
      }
      if (!isWhole<T>(values, fields)) throw new RangeError("a message lacks fields");
      return values;
    },
  };
}

/** The table has the fields of T and no others, and each value was read by the kind that its field needs. */
function isWhole<T extends object>(values: object, fields: FieldsOf<T>): values is T {
  return Object.keys(values).length === Object.keys(fields).length;
}

function isMissing({ kind }: Field, value: unknown): boolean {
  return value === kind.missing || value === "" || (value instanceof Uint8Array && value.length === 0);
}

function writeField(writer: Writer, { number, kind }: Field, value: unknown): void {
  writer.tag(number, kind.type);
  kind.write(writer, value);
}

function readOne(reader: Reader, { number, kind }: Field, type: number): unknown {
  if (type !== kind.type) throw new RangeError(`field ${number} has wire type ${type}`);
  return kind.read(reader);
}

function readMany(reader: Reader, field: Field, type: number, values: unknown[]): void {
  const packed = type === wireType.bytes && field.kind.type === wireType.varint;
  if (!packed) {
    values.push(readOne(reader, field, type));
    return;
  }
  const block = new Reader(reader.block());
  while (!block.done) values.push(field.kind.read(block));
}

function list(value: unknown): unknown[] {
  if (!Array.isArray(value)) throw new TypeError("not a list");
  return value;
}
