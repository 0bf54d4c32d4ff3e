import { createRoot } from 'react-dom/client';
import { App } from './app.tsx';
import { restoreSession } from './session.ts';
import './theme.ts';

void restoreSession();
createRoot(document.getElementById('app')!).render(<App />);
