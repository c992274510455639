import type { ScreenProps } from '../app/screen';

export function Compare({ route }: ScreenProps) {
  return <p>Compare {route.name}</p>;
}
