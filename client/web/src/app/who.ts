// Who the person is to the collector, asked once for the header and all screens; null: not known yet.
import { createContext } from 'preact';
import type { WhoAmIResponse } from '../api/types';

export const WhoContext = createContext<WhoAmIResponse | null>(null);
