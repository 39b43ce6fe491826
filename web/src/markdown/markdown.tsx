import { memo, useRef, type ComponentProps } from 'react'
import ReactMarkdown, { type Components } from 'react-markdown'
import remarkGfm from 'remark-gfm'
import remend from 'remend'
import { isOpenFence, none, source, split } from './blocks'
import { CodeBlock } from './code'

/** Text of a model, as Markdown: no HTML, no remote content, links only to https. */
export function Markdown({ text, streaming = false }: { text: string; streaming?: boolean }) {
  const before = useRef(none)
  const blocks = split(text, before.current)
  before.current = blocks
  const last = blocks.list.length - 1
  return (
    <div className="prose" dir="auto">
      {blocks.list.map((block, i) => (
        <Rendered key={block.start} text={source(block, blocks)} open={streaming && i === last} />
      ))}
    </div>
  )
}

const Rendered = memo(function Rendered({ text, open }: { text: string; open: boolean }) {
  const fence = open && isOpenFence(text)
  const whole = open && !fence ? remend(text, { katex: false, linkMode: 'text-only', images: false }) : text
  return (
    <ReactMarkdown remarkPlugins={plugins} components={fence ? openComponents : components} urlTransform={https}>
      {whole}
    </ReactMarkdown>
  )
})

const plugins: ComponentProps<typeof ReactMarkdown>['remarkPlugins'] = [[remarkGfm, { singleTilde: false }]]

/** The address if it is https, else none. */
export function https(url: string): string {
  try {
    return new URL(url).protocol === 'https:' ? url : ''
  } catch {
    return ''
  }
}

const components: Components = {
  a: ({ href, children }) =>
    href ? (
      <a href={href} target="_blank" rel="noopener noreferrer nofollow" title={href}>
        {children}
      </a>
    ) : (
      <span className="dead-link">{children}</span>
    ),
  img: ({ src, alt }) => (
    <span className="no-image">
      {alt || 'image'} {typeof src === 'string' && src ? <a href={src} target="_blank" rel="noopener noreferrer nofollow">(image, not loaded)</a> : '(image, not loaded)'}
    </span>
  ),
  table: ({ children }) => (
    <div className="table-scroll" tabIndex={0} role="region" aria-label="Table">
      <table>{children}</table>
    </div>
  ),
  pre: ({ children }) => <Fence>{children}</Fence>,
}

const openComponents: Components = { ...components, pre: ({ children }) => <Fence open>{children}</Fence> }

function Fence({ children, open = false }: { children?: React.ReactNode; open?: boolean }) {
  const props = (children as { props?: { className?: string; children?: unknown } } | undefined)?.props
  const language = /language-(\S+)/.exec(props?.className ?? '')?.[1] ?? ''
  const code = typeof props?.children === 'string' ? props.children : ''
  return <CodeBlock code={code.replace(/\n$/, '')} language={language} plain={open} />
}
