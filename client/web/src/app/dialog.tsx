// A dialog of the browser's own: it keeps the focus inside, closes with Esc, and gives the focus
// back to where it was.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

export function Dialog({ label, close, children }: { label: string; close: () => void; children: ComponentChildren }) {
  const ref = useRef<HTMLDialogElement>(null);
  const gone = useRef(false);
  useEffect(() => {
    const before = document.activeElement;
    const dialog = ref.current;
    dialog?.showModal();
    return () => {
      gone.current = true;
      dialog?.close(); // While it is open, nothing outside takes the focus.
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={ref} aria-label={label}
      onClose={() => !gone.current && close()}
      onClick={(event) => event.target === ref.current && close()}
    >
      {children}
    </dialog>
  );
}
