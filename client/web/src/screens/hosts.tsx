import type { ScreenProps } from '../app/screen';

export function Hosts({ route }: ScreenProps) {
  return <p>Hosts {route.name}</p>;
}
