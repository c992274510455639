import type { ScreenProps } from '../app/screen';

export function Fleet({ route }: ScreenProps) {
  return <p>Fleet {route.name}</p>;
}
