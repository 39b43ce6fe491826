import { QueryClientProvider } from '@tanstack/react-query'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { signIn } from './api/client'
import { queries } from './api/queries'
import { App } from './app'
import { connect } from './state/stream'
import './styles.css'

// A link: what comes of it shows when the window connects.
const code = location.pathname === '/open' ? new URLSearchParams(location.search).get('code') : null
if (location.pathname === '/open') history.replaceState(null, '', '/')
void (code ? signIn({ code }).catch(() => {}) : Promise.resolve()).then(connect)

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <App />
    </QueryClientProvider>
  </StrictMode>,
)
