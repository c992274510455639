import type { TabProps } from '../app/screen';

export function Metrics({ route }: TabProps) {
  return <p>Metrics {route.name}</p>;
}
