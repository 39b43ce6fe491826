import { Redirect, Route, Router, Switch } from 'wouter'
import { useHashLocation } from 'wouter/use-hash-location'
import { ChatScreen } from './chat/chat-screen'
import { SettingsScreen } from './settings/settings-screen'
import { FirstStart } from './setup/first-start'
import { Boundary } from './shell/boundary'
import { Shell } from './shell/shell'
import { SignIn } from './shell/sign-in'
import { Starting } from './shell/starting'
import { useStore } from './state/store'

/** What is shown: the sign-in, the first start, or the app. */
export function App() {
  const signedOut = useStore((s) => s.signedOut)
  const ready = useStore((s) => s.state !== undefined)
  const setup = useStore((s) => s.state?.setupNeeded === true)
  if (signedOut) return <SignIn login={signedOut.login} />
  if (!ready) return <Starting />
  return (
    <Boundary>
      <Router hook={useHashLocation}>{setup ? <FirstStart /> : <Screens />}</Router>
    </Boundary>
  )
}

function Screens() {
  return (
    <Shell>
      <Switch>
        <Route path="/chat/:session?">{({ session }) => <ChatScreen session={session} />}</Route>
        <Route path="/settings/:section?/:item?">{({ section, item }) => <SettingsScreen section={section} item={item} />}</Route>
        <Route>
          <Redirect to="/chat" replace />
        </Route>
      </Switch>
    </Shell>
  )
}
