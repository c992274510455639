import type { TabProps } from '../app/screen';

export function Tasks({ route }: TabProps) {
  return <p>Tasks {route.name}</p>;
}
