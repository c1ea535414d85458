/** Store addresses as people may see them: the one place that knows which parts of an address are secret. */

const form = /^([a-z][a-z0-9+.-]*:)(\/\/)?(.*)$/is;
const secretWord = /pass|pwd|secret|token|key|auth|cred/i;

/**
 * A store's address without user, password and parameters. Whatever stands before the last "@" is left out, even where
 * that is too much: a password may contain any character, and people forget to encode them.
 */
export function showStore(url: string | undefined): string {
  if (url === undefined) return "sqlite (the file of this user)";
  const parts = form.exec(url);
  if (parts === null) return "without a scheme";
  const [, scheme = "", slashes = "", rest = ""] = parts;
  const hasAuthority = slashes !== "" && !rest.startsWith("/");
  const place = hasAuthority ? rest.slice(rest.lastIndexOf("@") + 1) : rest;
  return `${scheme}${slashes}${place.replace(/[?#].*$/s, "")}`;
}

/** A function that takes the secrets of an address out of any text, such as a driver's message. */
export function secretsOf(url: string | undefined): (text: string) => string {
  // Where there is neither user nor parameter there is no secret, and a short word is no address to look for.
  if (url === undefined || !/[@?]/.test(url)) return (text) => text;
  const shown = showStore(url);
  const secrets = [...userParts(url), ...parameters(url)]
    .flatMap((secret) => [secret, decoded(secret)])
    // Shorter ones would be found everywhere; they are hidden where the whole address is.
    .filter((secret) => secret.length > 3)
    .toSorted((one, other) => other.length - one.length);
  return (text) =>
    secrets.reduce((left, secret) => left.replaceAll(secret, "***"), text.replaceAll(url, shown));
}

/** User and password, together and apart; the user alone is no secret. */
function userParts(url: string): readonly string[] {
  const [, , slashes, rest = ""] = form.exec(url) ?? [];
  const end = rest.lastIndexOf("@");
  if (slashes === undefined || rest.startsWith("/") || end < 0) return [];
  const user = rest.slice(0, end);
  if (!user.includes(":")) return [];
  return [user, user.slice(user.indexOf(":") + 1)];
}

function parameters(url: string): readonly string[] {
  const query = /\?(.*)$/s.exec(url)?.[1] ?? "";
  return query.split("&").flatMap((pair) => {
    const [name = "", value = ""] = pair.split(/=(.*)/s);
    return secretWord.test(name) ? [value] : [];
  });
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
