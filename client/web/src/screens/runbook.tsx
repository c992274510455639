// What to do about an alert or a verdict: the page of docs/runbooks, from the collector itself.
import { usePoll } from '../api/poll';
import { errorOf, RpcError } from '../api/rpc';
import { copyText, shellWord } from '../parts/copy';
import { fmt } from '../parts/format';
import { markdown, type MarkdownOptions } from '../parts/markdown';
import { Failed, Loading } from '../parts/states';
import { href } from '../app/route';
import type { ScreenProps } from '../app/screen';

export async function read(name: string, signal: AbortSignal): Promise<string> {
  const response = await fetch(`./runbooks/${encodeURIComponent(name)}.md`, { signal, credentials: 'omit' });
  if (response.ok) return response.text();
  if (response.status === 404) throw new RpcError('not_found', `The collector has no runbook “${name}”.`, 404);
  throw errorOf({}, response.status, response.headers.get('Retry-After'));
}

export function Runbook({ route }: ScreenProps) {
  const { name } = route;
  const { data, error, reload } = usePoll(`runbook ${name}`, (signal) => read(name, signal), 0);
  if (error && !data) return <Failed error={error} retry={reload} />;
  if (data === null) return <Loading height={400} />;
  const job = route.q.job;
  const options: MarkdownOptions = {
    link: (target) => {
      const other = /^(Tacho\w+)\.md$/.exec(target);
      return other ? href({ screen: 'runbook', name: other[1] }) : null;
    },
    code: (text) => (job ? text.replace(/\bJOB\b/g, () => shellWord(job)) : text),
  };
  return (
    <article class="runbook">
      <p class="actions">
        {job ? <a href={href({ screen: 'job', name: job })}>← {fmt.text(job)}</a> : <a href={href({ screen: 'fleet' })}>← Fleet</a>}
        <button onClick={() => void copyText(location.href)}>Copy link</button>
      </p>
      {markdown(data, options)}
    </article>
  );
}
