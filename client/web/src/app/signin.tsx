// Asks for a token when the collector answers 401. The URL stays, so that the same link opens next.
import { useState } from 'preact/hooks';
import { auth } from '../api/auth';
import { RpcError, unary } from '../api/rpc';
import { fmt } from '../parts/format';

export function SignIn() {
  const [token, setToken] = useState('');
  const [keep, setKeep] = useState(false);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(auth.reason);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault(); // Nothing is ever sent as a form.
    const value = token.trim();
    if (!value || busy) return;
    setBusy(true);
    setProblem('');
    try {
      await unary('tacho.v1.View/WhoAmI', {}, { token: value });
      auth.signIn(value, keep);
    } catch (error) {
      setProblem(error instanceof RpcError ? error.message : String(error));
      setBusy(false);
    }
  };
  return (
    <section class="signin">
      <h1>Sign in</h1>
      <p>
        This collector asks for a token. Whoever runs it can give you one; <code>tacho-collector --make-token</code> makes
        it.
      </p>
      <form onSubmit={(event) => void submit(event)}>
        <label for="token">Token</label>
        <input
          id="token" type="password" autocomplete="off" spellcheck={false} value={token} autofocus
          aria-describedby="token-note" aria-invalid={problem ? true : undefined}
          onInput={(event) => setToken(event.currentTarget.value)}
        />
        <button type="submit" disabled={busy}>{busy ? 'Asking …' : 'Sign in'}</button>
        <label class="keep">
          <input type="checkbox" checked={keep} onChange={(event) => setKeep(event.currentTarget.checked)} /> keep it in this
          browser
        </label>
      </form>
      <p role="alert" class="problem">{problem ? fmt.text(problem) : ''}</p>
      <p class="dim" id="token-note">
        It goes to this collector only, and not into any link. Without the box it is forgotten with the tab.
      </p>
    </section>
  );
}
