// "?": every key that works now.
import { Dialog } from './dialog';
import { bound } from './keys';
import { choices } from './theme';

const shown = (keys: string): string[] => keys.split(' ').map((key) => key.replace('ctrl+', 'Ctrl ').replace(/^(.),(.)$/, '$1 $2'));

export function Help({ close }: { close: () => void }) {
  return (
    <Dialog label="Keys" close={close}>
      <h2>Keys</h2>
      <dl class="keys">
        {bound().filter((binding) => binding.help).map((binding) => (
          <div key={binding.keys}>
            <dt>{shown(binding.keys).map((key) => <kbd key={key}>{key}</kbd>)}</dt>
            <dd>{binding.help}</dd>
          </div>
        ))}
      </dl>
      <label>
        <input type="checkbox" checked={choices.keys} onChange={(event) => choices.setKeys(event.currentTarget.checked)} /> keys of
        one letter
      </label>
      <p class="actions"><button onClick={close}>Close</button></p>
    </Dialog>
  );
}
