// Those who want to know that something has changed.

export interface Listeners {
  // Returns what ends it.
  on(listener: () => void): () => void;
  tell(): void;
}

export function listeners(): Listeners {
  const all = new Set<() => void>();
  return {
    on(listener) {
      all.add(listener);
      return () => void all.delete(listener);
    },
    // One that comes or goes meanwhile changes nothing of this round.
    tell() {
      for (const listener of [...all]) listener();
    },
  };
}
