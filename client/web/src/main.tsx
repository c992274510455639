// The page begins here: what the person chose, the token, the shell, the screen of the URL.
import { render } from 'preact';
import './app/theme.css';
import { auth } from './api/auth';
import { feed } from './api/feed';
import { Shell } from './app/shell';
import { choices } from './app/theme';

choices.start();
auth.start();
feed.start();
render(<Shell />, document.getElementById('app')!);
