// A pattern that a person types; while it is not whole, its text is looked for. A slash in
// front of it does not count.
export function pattern(text: string): (value: string) => boolean {
  if (!text) return () => true;
  try {
    const expression = new RegExp(text.replace(/^\//, ''), 'i');
    return (value) => expression.test(value);
  } catch {
    return (value) => value.toLowerCase().includes(text.toLowerCase());
  }
}
