import type { ScreenProps } from '../app/screen';

export function Collector({ route }: ScreenProps) {
  return <p>Collector {route.name}</p>;
}
