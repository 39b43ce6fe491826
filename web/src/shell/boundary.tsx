import { Component, type ErrorInfo, type ReactNode } from 'react'
import { Button } from '../ui/button'
import { CopyButton } from '../ui/copy'

/** Shows a fault of the app itself, instead of an empty window. */
export class Boundary extends Component<{ children: ReactNode }, { error?: Error }> {
  override state: { error?: Error } = {}

  static getDerivedStateFromError(error: Error) {
    return { error }
  }

  override componentDidCatch(error: Error, info: ErrorInfo) {
    console.error(error, info.componentStack)
  }

  override render() {
    const { error } = this.state
    if (!error) return this.props.children
    return (
      <main className="centred">
        <h1 className="text-title font-semibold">This screen has failed</h1>
        <p className="text-text2">The fault is in the app's user interface. Your sessions are safe, and what you typed is kept.</p>
        <pre className="w-full overflow-auto rounded-md border border-line bg-panel p-3">{error.message}</pre>
        <div className="flex gap-2">
          <Button kind="primary" onClick={() => location.reload()}>Load again</Button>
          <CopyButton text={`${error.message}\n${error.stack ?? ''}`} label="Copy the details" />
        </div>
      </main>
    )
  }
}
