// Keys of the whole page. A screen binds its own while it is shown; the newest binding of a key
// wins. Keys without Ctrl do nothing while a person types, and can be switched off (WCAG 2.1.4).
import { useEffect, useRef } from 'preact/hooks';
import { choices } from './theme';

export interface Binding {
  keys: string; // As KeyboardEvent.key; several are separated by blanks; "ctrl+k"; "g f" is "g,f".
  help: string;
  run: (event: KeyboardEvent) => void | boolean; // false: not mine.
}

const stacks: { bindings: Binding[] }[] = [];
let prefix = '';
let prefixTimer: ReturnType<typeof setTimeout> | undefined;

export function typing(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  const input = target instanceof HTMLInputElement && !['checkbox', 'radio', 'button'].includes(target.type);
  return input || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement || target.isContentEditable;
}

export function chord(event: KeyboardEvent): string {
  return event.ctrlKey || event.metaKey ? `ctrl+${event.key.toLowerCase()}` : event.key;
}

// Whether the key completes a sequence of the binding ("g,a"), or is one of its single keys.
function matches(binding: Binding, pressed: string, before: string, inSequence: boolean): boolean {
  return binding.keys.split(' ').some((keys) => {
    const sequence = keys.length > 1 ? keys.split(',') : [keys];
    return inSequence ? sequence[0] === before && sequence[1] === pressed : keys === pressed;
  });
}

// What may run, first to last: a sequence before a single key, or a screen's own "a" would take
// "g a" away.
export function candidates(all: Binding[], pressed: string, before: string): Binding[] {
  const found = (inSequence: boolean) => all.filter((binding) => matches(binding, pressed, before, inSequence));
  return [...found(true), ...found(false)];
}

function dispatch(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.altKey) return;
  const pressed = chord(event);
  const plain = !pressed.startsWith('ctrl+');
  if (document.querySelector('dialog[open]')) {
    // A dialog has its own keys. Ctrl K is ours there too, or the browser would take it.
    if (!plain && candidates(bound(), pressed, '').length) event.preventDefault();
    return;
  }
  if (plain && (typing(event.target) || (pressed.length === 1 && !choices.keys))) return;
  const before = prefix;
  clearTimeout(prefixTimer);
  prefix = plain && pressed.length === 1 ? pressed : '';
  prefixTimer = setTimeout(() => (prefix = ''), 1200);
  for (const binding of candidates(bound(), pressed, before)) {
    if (binding.run(event) === false) continue;
    event.preventDefault();
    prefix = '';
    return;
  }
}

if (typeof document !== 'undefined') document.addEventListener('keydown', dispatch);

export function useKeys(bindings: Binding[]): void {
  const entry = useRef({ bindings });
  entry.current.bindings = bindings;
  useEffect(() => {
    const mine = entry.current;
    stacks.push(mine);
    return () => void stacks.splice(stacks.indexOf(mine), 1);
  }, []);
}

// What can be pressed now, the screen's own first.
export function bound(): Binding[] {
  return [...stacks].reverse().flatMap((entry) => entry.bindings);
}
