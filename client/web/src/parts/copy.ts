// Text to the clipboard. Browsers give it to pages on https and on loopback only; elsewhere the
// old way still works.
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return notice('Copied.');
  } catch {
    const area = document.createElement('textarea');
    area.value = text;
    area.className = 'vh';
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    return notice(done ? 'Copied.' : 'The browser does not allow copying.') && done;
  }
}

export function notice(text: string): boolean {
  window.dispatchEvent(new CustomEvent('tacho-notice', { detail: text }));
  return true;
}

// Offers `text` as a file.
export function download(name: string, text: string, type = 'text/csv'): void {
  downloadBlob(name, new Blob([text], { type }));
}

export function downloadBlob(name: string, blob: Blob): void {
  const url = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

// `word` for a shell's command line: job names are anybody's.
export function shellWord(word: string): string {
  return /^[\w.@:/=,+-]+$/.test(word) ? word : `'${word.replace(/'/g, `'\\''`)}'`;
}
