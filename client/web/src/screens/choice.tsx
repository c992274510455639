// Small controls that several screens have.
import { fmt } from '../parts/format';

interface ChoiceProps<T extends string> {
  legend: string;
  values: readonly T[];
  now: T;
  set: (value: T) => void;
  words?: Partial<Record<T, string>>;
}

export function Choice<T extends string>({ legend, values, now, set, words = {} }: ChoiceProps<T>) {
  return (
    <fieldset class="choice">
      <legend>{legend}</legend>
      {values.map((value) => (
        <button key={value} aria-pressed={value === now} onClick={() => set(value)}>{words[value] ?? value}</button>
      ))}
    </fieldset>
  );
}

export interface Options {
  title: string;
  names: string[];
}

export function MetricChoice({ groups, now, set, label = 'metric' }: {
  groups: Options[]; now: string; set: (name: string) => void; label?: string;
}) {
  const known = groups.some((g) => g.names.includes(now));
  return (
    <label>
      {label}{' '}
      <select value={now} onChange={(e) => set(e.currentTarget.value)}>
        {known ? null : <option value={now}>{fmt.text(now)}</option>}
        {groups.filter((g) => g.names.length).map((g) => (
          <optgroup key={g.title} label={g.title}>
            {g.names.map((name) => <option key={name} value={name}>{fmt.text(name) || 'any'}</option>)}
          </optgroup>
        ))}
      </select>
    </label>
  );
}

export function one<T extends string>(value: string | undefined, values: readonly T[], usual: T): T {
  return values.includes(value as T) ? (value as T) : usual;
}
