/** Which cases catch which broken backend: what broken.test.ts proves. Others may catch it, too; these must. */

/** For each broken backend, the cases that must fail on it. */
export const caughtBy: Readonly<Record<string, readonly string[]>> = {
  "of a renewal that is there twice one is answered with gone": [
    "the same renewal twice in one call is answered twice",
  ],
  "a renewal that meets an eviction does not say so": [
    "an entry that is evicted while it is renewed hears that it was",
  ],
  "renews whatever has the id": ["a renewal of an entry that joined again later is not one of the new entry"],
  "evicts whatever has the id": ["a late eviction does not hit an entry that joined again with the same id"],
  "releases whatever has the id": ["a late release does not hit an entry that joined again with the same id"],
  "a hand-over leaves the entry where it is": [
    "a hand-over takes the entry out, and tells who is next if the heir is gone",
  ],
  "a hand-over takes the heir out, too": ["a hand-over leaves the heir in the queue, as its holder"],
  "late commit: an entry becomes visible after those behind it": [
    "no entry ever appears ahead of a visible one",
    "a grant is never revoked by what comes and goes",
  ],
  "last come, first listed": [
    "concurrent appends of several clients stand in the order of their seq",
    "query shows who holds and who waits, with clientId, in request order",
  ],
  "calls of one client overtake each other": [
    "calls of one client take effect in call order",
    "requests of one client are granted in call order",
  ],
  "an append is answered before it happens": [
    "an append that has been answered is visible to all clients",
    "the token of a holder is the one that query shows",
  ],
  "not monotone: entries behind count as ahead": [
    "a grant is never revoked by what comes and goes",
    "an exclusive request waits for the one before, of this client or another",
    "requests of one client are granted in call order",
    "requests for the same names in opposite orders do not wait for each other for ever",
    "a counter that is read, waited with and written under the lock loses no count",
  ],
  "counts nobody ahead": [
    "concurrent appends of several clients stand in the order of their seq",
    "append says how many are ahead",
    "what a wake-up carries is what a listing shows",
  ],
  "takes the count for the weight": [
    "append says how much weight is ahead",
    "a heavy request is not overtaken by light ones",
  ],
  "takes the nearest for the nearest writer": [
    "append says which writer is the nearest ahead",
    "a reader is granted beside readers and behind no writer",
    "all watchers of one target are told",
    "readers hold together, a writer waits for them, and readers behind it wait for it",
  ],
  "sees a writer ahead only if it is the nearest": [
    "a grant is never revoked by what comes and goes",
    "all watchers of one target are told",
  ],
  "grants what its own client has already": [
    "two entries of one client exclude each other",
    "a reader is granted beside readers and behind no writer",
    "requests of several clients are granted in the order of their arrival",
    "after hundreds of cancellations at random moments nothing is left",
    "random interleavings exclude each other, keep their order and leave nothing",
  ],
  "takes the first for the nearest": [
    "append says which entry is the nearest ahead",
    "a hand-over of an exclusive lock wakes one waiter",
  ],
  "sees somebody ahead of a free lock": [
    "a free lock is granted in one trip",
    "appended again, an entry keeps its place and its seq",
  ],
  "append is not idempotent": [
    "appended again, an entry keeps its place and its seq",
    "with onlyIfGranted a free lock is granted, and found again",
    "once its target has expired, a waiter is told or finds itself first",
  ],
  "append looks first and then appends, and is overtaken in between": [
    "appended twice at once, an entry is there once",
  ],
  "appended again, an entry goes to the tail": [
    "appended again, an entry keeps its place and its seq",
    "once its target has expired, a waiter is told or finds itself first",
  ],
  "appended again, an entry lives longer": ["appended again, an entry keeps its remaining life"],
  "an id that has left is not taken again": [
    "appended again after it has left, an entry joins at the tail with a new seq",
    "waiters that a theft displaced go on",
  ],
  "a refused append leaves its entry in the queue": [
    "with onlyIfGranted a busy lock refuses, and the refused entry is nowhere",
    "with onlyIfGranted permits are refused beyond their number only",
  ],
  "onlyIfGranted is ignored": [
    "with onlyIfGranted a busy lock refuses, and the refused entry is nowhere",
    "with onlyIfGranted permits are refused beyond their number only",
    "after refusals nothing is left",
    "ifAvailable gives null when it is busy, and the lock when it is free",
    "several names are taken all or nothing",
  ],
  "onlyIfGranted refuses whenever somebody is there": [
    "with onlyIfGranted a free lock is granted, and found again",
    "with onlyIfGranted a reader is refused behind a writer only",
    "with onlyIfGranted permits are refused beyond their number only",
  ],
  "onlyIfGranted refuses what is found again": ["with onlyIfGranted a free lock is granted, and found again"],
  "declares no shared locks, and grants them": ["a store without shared locks refuses readers"],
  "declares no semaphores, and grants permits": ["a store without semaphores refuses permits"],
  "seq restarts when the queue empties": [
    "seq grows over a queue that was empty in between",
    "seq grows over an entry that was evicted",
    "seq grows over an entry that has expired",
    "seq grows over a time in which the store had no client",
    "random interleavings exclude each other, keep their order and leave nothing",
  ],
  "seq goes back": [
    "seq grows in a queue, whichever client appends",
    "seq grows over a queue that was empty in between",
  ],
  "seq is counted by each client": [
    "seq grows in a queue, whichever client appends",
    "seq grows over a queue that was empty in between",
  ],
  "seq is a number": [
    "seq is a bigint wherever an entry is shown",
    "tokens grow over the grants of two clients",
    "tokens grow across modes",
  ],
  "remove does not look at the id": [
    "remove of an id that is not there touches nothing",
    "a waiter that leaves changes nothing for the others",
    "a waiter that was evicted is never told that it is first",
  ],
  "remove of what is not there takes the first": [
    "remove of an id that is not there touches nothing",
    "remove of an id that nobody can have takes nobody out of a line",
    "remove of an id in another queue touches neither queue",
    "a late duplicate of a release does not hit the next holder",
  ],
  "remove does not look at the queue": ["remove of an id in another queue touches neither queue"],
  "remove always says that it was there": [
    "remove takes an entry out and says so once",
    "of several removes of one entry exactly one is true",
  ],
  "remove takes all that is behind, too": [
    "a waiter that leaves changes nothing for the others",
    "after waiters have left, front to back or back to front, nothing is left",
  ],
  "remove says yes and does nothing": [
    "remove takes an entry out and says so once",
    "a callback's error comes out, and the lock is released",
    "after releases nothing is left",
  ],
  "entries expire by the clock of the client, which stands still": [
    "an entry that nobody renews expires",
    "an expired holder does not stand ahead of those behind it",
    "an entry that has expired cannot be removed any more",
  ],
  "entries expire after half of their ttl": ["an entry does not expire before its ttl"],
  "a ttl beyond 2^31 ms wraps": ["an entry with a ttl of 30 days does not expire at once"],
  "the remaining life is rounded up to ten seconds": [
    "the remaining life is shown, never more than there is",
  ],
  "expired entries stay until somebody removes them": [
    "with onlyIfGranted a lock whose holder has expired is granted",
    "an entry that has expired cannot be removed any more",
    "an entry that nobody renews expires",
    "queues gives no queue that has become empty",
    "after expiry nothing is left",
  ],
  "an expired waiter in the middle keeps its place": [
    "an expired waiter between others stands in nobody's way",
    "a waiter that has expired is never told that it is first",
  ],
  "a renewal brings a removed entry back": [
    "a removed entry is gone, and a renewal does not bring it back",
    "an expired entry is gone, and a renewal does not bring it back",
  ],
  "a renewal of what is gone is answered with renewed": [
    "an entry that never was is gone",
    "a removed entry is gone, and a renewal does not bring it back",
    "an expired entry is gone, and a renewal does not bring it back",
  ],
  "a renewal does nothing": [
    "a renewed entry outlives its first ttl",
    "a renewal says how long the entry lives now",
  ],
  "a renewal sends the entry to the tail": [
    "a waiter can be renewed, and keeps its place and its seq",
    "a lock that is held for long is renewed, and so are its waiters",
  ],
  "a batch is answered with the renewed ones first": ["a batch is answered in its own order"],
  "a batch beyond 256 is cut": ["a batch of hundreds is answered in full"],
  "an eviction is not told": [
    "an evicted entry is gone, and the answer says evicted",
    "a client that can be told of an eviction is told of its own entries only",
    "steal grants at once, and the request it took from rejects with AbortError",
  ],
  "each removal is told as an eviction": [
    "an entry that left by itself is not called evicted",
    "a client that can be told of an eviction is told of its own entries only",
  ],
  "an eviction is told to everybody": [
    "a client that can be told of an eviction is told of its own entries only",
  ],
  "wake-ups are lost": [
    "a watcher is told when its target leaves",
    "a watcher is told when its target is evicted",
    "requests of several clients are granted in the order of their arrival",
  ],
  "wake-ups of those who wait for permits are lost": [
    "a waiter for permits is told when there is room for it",
    "a waiter for permits is told of room that was made before the watch stood",
  ],
  "only the first of several watchers is woken": [
    "all watchers of one target are told",
    "a watch leaves nothing when it is ended, and nothing when it was called",
  ],
  "what has left before the watch stood is not reported": [
    "a watcher is told when its target left before the watch stood",
    "a waiter for permits is told of room that was made before the watch stood",
  ],
  "who was told once is told no more": ["a watcher is told when its target leaves while it looks"],
  "an eviction wakes nobody": [
    "a watcher is told when its target is evicted",
    "a release by force is told to the holder, and the next is granted",
  ],
  "everybody is woken": ["a hand-over of an exclusive lock wakes one waiter"],
  "a watch that was ended is still called": ["a watch that was ended is not called"],
  "a wake-up says first, whoever is ahead": [
    "a waiter that was evicted is never told that it is first",
    "a waiter that has expired is never told that it is first",
  ],
  "a watch fires before the other has left, and says first": [
    "a watch tells nobody that it is first while somebody is ahead",
    "a waiter that was evicted is never told that it is first",
    "a wait that is over rejects with LOCK_TIMEOUT and leaves the queue",
    "a signal aborted during the wait rejects with its reason, and the others go on",
    "parallel branches inside one section enter one at a time, and nobody else does",
  ],
  "a dead waiter is told what was ahead of it": [
    "a waiter that was evicted is never told that it is first",
    "a waiter that has expired is never told that it is first",
  ],
  "close leaves a timer": ["when all clients are closed nothing stays open"],
  "close does not close": [
    "calls after close reject with LOCK_CLOSED",
    "a closed client's watches are not called any more",
  ],
  "close rejects the second time": ["a client may be closed twice"],
  "close takes the client's entries along": [
    "entries of a closed client are left to their ttl",
    "the lock of an owner that died is granted after its ttl",
  ],
  "close of one client ends the watches of all": [
    "closing one client does not disturb another",
    "closing a manager frees what it holds and leaves the queues",
  ],
  "watches outlive their client": [
    "a watch that was ended is not called",
    "a closed client's watches are not called any more",
  ],
  "names are lower-cased": [
    "names that differ in case are different",
    "queues gives the names that start with a prefix, and no others",
  ],
  "names are cut at 64 characters": ["names that differ in their last character of 512 bytes are different"],
  "names are trimmed": ["names with characters that stores treat specially are different"],
  "names are normalised": ["names of Unicode are different unless they are the same"],
  "names are kept as ASCII": [
    "names of Unicode are different unless they are the same",
    "queues gives the names that start with a prefix, and no others",
  ],
  "names are paths": ["names that start with one another are different"],
  "names end at a colon": ["names that start with one another are different"],
  "semaphores stand with the locks": [
    "names that start with one another are different",
    "a semaphore and a lock of the same name do not meet",
  ],
  "names are properties of an object": ["names of properties that every object has are names like others"],
  "a listing has what starts with its name": [
    "names that differ in their last character of 512 bytes are different",
    "names that start with one another are different",
  ],
  "queues takes the prefix for a pattern": ["queues gives the names that start with a prefix, and no others"],
  "queues remembers those that are empty": [
    "after releases nothing is left",
    "a request runs its callback while it holds, and gives its result",
    "a callback's error comes out, and the lock is released",
    "a signal aborted after the grant has no effect",
    "a nested request enters with the same token, and adds nothing to the queue",
  ],
  "metadata is lost": [
    "metadata of 4 KiB comes back as it was",
    "query shows who holds and who waits, with clientId, in request order",
  ],
  "metadata is cut at 255 characters": ["metadata of 4 KiB comes back as it was"],
  "the owner's label is lost": ["the owner comes back as it was"],
  "all owners are one": [
    "the owner comes back as it was",
    "query shows who holds and who waits, with clientId, in request order",
  ],
  "every entry is a writer": [
    "a reader is granted beside readers and behind no writer",
    "mode, weight and permits come back as they were",
  ],
  "every entry is a reader": [
    "two entries of one client exclude each other",
    "a reader is granted beside readers and behind no writer",
    "an expired holder does not stand ahead of those behind it",
    "after hundreds of cancellations at random moments nothing is left",
    "random interleavings exclude each other, keep their order and leave nothing",
  ],
  "every entry weighs one": [
    "with onlyIfGranted permits are refused beyond their number only",
    "mode, weight and permits come back as they were",
    "permits are never exceeded, and all get theirs",
  ],
  "permits are not shown": ["mode, weight and permits come back as they were"],
};
