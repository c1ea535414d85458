/** Numbers and texts as people read them on a terminal: durations, widths, and text that cannot play tricks. */

/** A duration at a glance: 0.4s, 12s, 3m20s, 2h05m, 4d03h. */
export function human(ms: number): string {
  if (ms < 1_000) return `${Math.floor(Math.max(0, ms) / 100) / 10}s`;
  const seconds = Math.floor(ms / 1_000);
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}m${twoDigits(seconds % 60)}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 1_440) return `${Math.floor(minutes / 60)}h${twoDigits(minutes % 60)}m`;
  const hours = Math.floor(minutes / 60);
  return `${Math.floor(hours / 24)}d${twoDigits(hours % 24)}h`;
}

function twoDigits(value: number): string {
  return String(value).padStart(2, "0");
}

// Control characters, and those that turn the direction of writing or hide: anybody may write them into a name or a label.
const tricks = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

/** Text that shows what it is: whatever a terminal would obey instead of showing is written as an escape. */
export function printable(text: string): string {
  return text.replace(tricks, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return code > 0xff ? `\\u{${code.toString(16)}}` : `\\x${code.toString(16).padStart(2, "0")}`;
  });
}

const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u;
const graphemes = new Intl.Segmenter();

/** How many cells a text takes on a terminal. */
export function widthOf(text: string): number {
  let width = 0;
  for (const { segment } of graphemes.segment(text)) width += wide.test(segment) ? 2 : 1;
  return width;
}

/** A text cut to so many cells, with a mark where it was cut. */
export function cut(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  let kept = "";
  let used = 1;
  for (const { segment } of graphemes.segment(text)) {
    used += wide.test(segment) ? 2 : 1;
    if (used > width) break;
    kept += segment;
  }
  return width < 1 ? "" : `${kept}…`;
}
