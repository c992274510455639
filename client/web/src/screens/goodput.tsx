import type { TabProps } from '../app/screen';

export function Goodput({ route }: TabProps) {
  return <p>Goodput {route.name}</p>;
}
