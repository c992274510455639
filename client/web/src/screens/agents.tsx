import type { ScreenProps } from '../app/screen';

export function Agents({ route }: ScreenProps) {
  return <p>Agents {route.name}</p>;
}
