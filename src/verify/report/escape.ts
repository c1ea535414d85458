/**
 * Text of others made safe to stand in HTML, between tags and in quoted attributes. Characters that would hide or turn
 * around what stands beside them are written out.
 */
const SPECIAL: ReadonlyMap<string, string> = new Map([
  ["&", "&amp;"],
  ["<", "&lt;"],
  [">", "&gt;"],
  ['"', "&quot;"],
  ["'", "&#39;"],
  ["`", "&#96;"],
]);

/** Escapes text for HTML. A line break stays one. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"'`]|[^\P{C}\n]|\p{Zl}|\p{Zp}/gu, (character) => {
    return SPECIAL.get(character) ?? `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
  });
}
