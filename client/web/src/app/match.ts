// Finds entries by a few letters: every word must occur, in any order. Beginnings of names and of
// words count most.

export interface Entry {
  text: string;
  note?: string;
  also?: string; // Found by this too, such as a job by its verdict.
  weak?: boolean; // Behind others that fit as well.
}

function scoreOf(entry: Entry, words: string[]): number {
  const text = entry.text.toLowerCase();
  const also = entry.also?.toLowerCase() ?? '';
  let score = entry.weak ? -3 : 0;
  for (const word of words) {
    const at = text.indexOf(word);
    if (at === 0) score += text.length === word.length ? 30 : 20;
    else if (at > 0) score += /[^a-z0-9]/.test(text[at - 1]) ? 12 : 6;
    else if (also.includes(word)) score += 5;
    else return -Infinity;
  }
  return score;
}

export function find<T extends Entry>(entries: T[], query: string, most: number): T[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return entries.filter((entry) => !entry.weak).slice(0, most);
  const scored: { entry: T; score: number; index: number }[] = [];
  entries.forEach((entry, index) => {
    const score = scoreOf(entry, words);
    if (score > -Infinity) scored.push({ entry, score, index });
  });
  scored.sort((a, b) => b.score - a.score || a.index - b.index);
  return scored.slice(0, most).map((s) => s.entry);
}
