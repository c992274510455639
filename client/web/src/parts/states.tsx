// What a screen shows instead of, or above, its data.
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { auth } from '../api/auth';
import type { RpcError } from '../api/rpc';
import { fmt } from './format';

// A quiet place of the right height. It appears late, so that a quick answer does not flicker.
export function Loading({ height = 120, label = 'Loading' }: { height?: number; label?: string }) {
  const [late, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), 150);
    return () => clearTimeout(timer);
  }, []);
  const size = { height: `${height}px` };
  return (
    <div class={late ? 'loading late' : 'loading'} style={size} role="status">
      <span class="vh">{label} …</span>
    </div>
  );
}

export function Empty({ title, hint, children }: { title: string; hint?: string; children?: ComponentChildren }) {
  return (
    <section class="empty">
      <h2>{title}</h2>
      {hint ? <p>{hint}</p> : null}
      {children}
    </section>
  );
}

const TITLES: Record<string, string> = {
  unauthenticated: 'Sign in to see this',
  permission_denied: 'Not permitted',
  not_found: 'Not found',
  invalid_argument: 'The collector does not understand this link',
  resource_exhausted: 'More than the collector gives at once',
  unavailable: 'The collector does not answer',
  deadline_exceeded: 'The query took too long',
  unimplemented: 'This collector cannot do that',
};

const HINTS: Record<string, string> = {
  permission_denied: 'The pattern of the token decides which jobs it may read. An operator can give you another token.',
  deadline_exceeded: 'Select a shorter range, or fewer series.',
  unavailable: 'The page asks again by itself.',
  unimplemented: 'It may be older than this page. Load the page again.',
};

// The collector's own text, and what can be done.
export function Failed({ error, retry, children }: { error: RpcError; retry?: () => void; children?: ComponentChildren }) {
  return (
    <section class="failed" role="alert">
      <h2>{TITLES[error.code] ?? 'The collector reports an error'}</h2>
      <p>{fmt.text(error.message)}</p>
      {HINTS[error.code] ? <p class="dim">{HINTS[error.code]}</p> : null}
      <p class="actions">
        {retry ? <button onClick={retry}>Try again</button> : null}
        {error.code === 'permission_denied' ? <button onClick={() => auth.signOut()}>Use another token</button> : null}
        {children}
      </p>
    </section>
  );
}

// Above data that is old because a refresh failed.
export function Stale({ ageMs, error }: { ageMs: number; error?: RpcError | null }) {
  return (
    <p class="stale" role="status">
      As of {fmt.duration(ageMs / 1000)} ago. {error ? fmt.text(error.message) : 'No answer since.'}
    </p>
  );
}
