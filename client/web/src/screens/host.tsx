import type { ScreenProps } from '../app/screen';

export function Host({ route }: ScreenProps) {
  return <p>Host {route.name}</p>;
}
