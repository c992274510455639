// What main.tsx gives each screen, and job.tsx each of its tabs.
import type { Route } from './route';

export interface ScreenProps {
  route: Route;
}

export interface TabProps {
  job: string;
  route: Route;
}
