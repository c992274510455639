import type { TabProps } from '../app/screen';

export function About({ route }: TabProps) {
  return <p>About {route.name}</p>;
}
