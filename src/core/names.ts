/** Names of locks as callers write them, checked once, and the names of the queues that they stand for. */
import { invalid, notSupported } from "./errors.ts";

/** How long a name may be, in bytes of UTF-8. */
const longestNameBytes = 512;

/** How long a label may be, in bytes of UTF-8. */
const longestLabelBytes = 512;

/** How long metadata may be, in bytes of UTF-8. */
const longestMetadataBytes = 4096;

/** A name that any store can keep; anything else is refused before it is sent. */
export function checkName(name: unknown): string {
  if (typeof name !== "string") throw invalid(`a lock's name must be a string, not ${typeName(name)}`);
  if (name.length === 0) throw invalid("a lock's name must not be empty");
  if (name.startsWith("-")) {
    throw notSupported(`the name ${JSON.stringify(name)} starts with "-", which the standard reserves`);
  }
  if (name.includes("\0")) throw invalid(`the name ${JSON.stringify(name)} contains a NUL character`);
  checkText(name, "a lock's name", longestNameBytes);
  return name;
}

/** Several names: sorted, each once. */
export function checkNames(names: readonly unknown[]): readonly string[] {
  if (names.length === 0) throw invalid("give at least one name");
  // Not by map, which passes over what is missing in between.
  return [...new Set(Array.from(names, (name) => checkName(name)))].toSorted();
}

/** Metadata: a small text for people. */
export function checkMetadata(metadata: unknown): string {
  return checkForPeople(metadata, "metadata", longestMetadataBytes);
}

/** A label, or another short text that is shown with it. */
export function checkLabel(label: unknown, option: string): string {
  return checkForPeople(label, option, longestLabelBytes);
}

function checkForPeople(text: unknown, what: string, longest: number): string {
  if (typeof text !== "string") throw invalid(`${what} must be a string, not ${typeName(text)}`);
  if (text.includes("\0")) throw invalid(`${what} must not contain a NUL character`);
  checkText(text, what, longest);
  return text;
}

function checkText(text: string, what: string, longest: number): void {
  if (!text.isWellFormed()) throw invalid(`${what} must be well-formed Unicode, without lone surrogates`);
  // One UTF-16 unit is at most three bytes, so short text needs no counting.
  if (text.length * 3 <= longest) return;
  const bytes = Buffer.byteLength(text);
  if (bytes > longest) throw invalid(`${what} may have ${longest} bytes of UTF-8 at most, this has ${bytes}`);
}

/** The type of a value, as a message names it. */
export function typeName(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "an array" : typeof value;
}

// Names of callers never start with "-", so the queues of semaphores cannot meet those of locks.
const semaphorePrefix = "-semaphore/";

/** The queue of a semaphore: another than that of the lock of the same name. */
export function semaphoreQueue(name: string): string {
  return semaphorePrefix + name;
}

/** The name that a queue stands for. */
export function nameOfQueue(queue: string): string {
  return queue.startsWith(semaphorePrefix) ? queue.slice(semaphorePrefix.length) : queue;
}
