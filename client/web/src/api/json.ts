// Values of proto3 JSON as numbers.

// A double or a 64-bit integer; absent is 0.
export function num(value: number | string | null | undefined): number {
  return value === undefined || value === null ? 0 : Number(value);
}

// The same; absent stays absent.
export function maybe(value: number | string | null | undefined): number | null {
  return value === undefined || value === null ? null : Number(value);
}

// Nanoseconds since the Unix epoch as milliseconds with fractions; absent is null.
export function ms(ns: number | string | null | undefined): number | null {
  if (ns === undefined || ns === null) return null;
  const text = String(ns);
  // A double cannot hold all digits of 1.8e18, so the milliseconds are split off as text.
  if (text.length > 6 && /^\d+$/.test(text)) return Number(text.slice(0, -6)) + Number(text.slice(-6)) / 1e6;
  return Number(text) / 1e6;
}

// Milliseconds since the Unix epoch as nanoseconds in digits, as a request wants them.
export function ns(milliseconds: number): string {
  const whole = Math.floor(milliseconds);
  const rest = Math.round((milliseconds - whole) * 1e6);
  return String(BigInt(whole) * 1000000n + BigInt(rest));
}
