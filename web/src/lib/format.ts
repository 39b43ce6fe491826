// Numbers and times for people. Locale en: the app's texts are English.

/** 380 ms, 2.1 s, 1 min 5 s. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`
  const s = Math.round(ms / 1000)
  if (s < 60) return `${s} s`
  if (s < 3600) return s % 60 ? `${Math.floor(s / 60)} min ${s % 60} s` : `${s / 60} min`
  const m = Math.round(s / 60)
  return m % 60 ? `${Math.floor(m / 60)} h ${m % 60} min` : `${m / 60} h`
}

/** Whole seconds that a wait has lasted. */
export function seconds(ms: number): string {
  return duration(Math.max(0, Math.floor(ms / 1000)) * 1000 || 0).replace(/^0 ms$/, '0 s').replace('.0 s', ' s')
}

/** 980, 4.1k, 1.2M. */
export function count(n: number): string {
  if (n < 1000) return String(n)
  if (n < 10_000) return `${(n / 1000).toFixed(1).replace(/\.0$/, '')}k`
  if (n < 1_000_000) return `${Math.round(n / 1000)}k`
  return `${(n / 1_000_000).toFixed(1).replace(/\.0$/, '')}M`
}

/** $0.0042, $1.20; a dash for a price that is not known. */
export function cost(usd: number | undefined): string {
  if (usd === undefined) return '—'
  if (usd === 0) return '$0'
  if (usd < 0.01) return `$${usd.toFixed(4)}`
  return `$${usd.toFixed(usd < 1 ? 3 : 2)}`
}

export function bytes(n: number): string {
  if (n < 1024) return `${n} B`
  if (n < 1024 * 1024) return `${(n / 1024).toFixed(n < 10 * 1024 ? 1 : 0)} KB`
  return `${(n / 1024 / 1024).toFixed(1)} MB`
}

export function plural(n: number, one: string, many = `${one}s`): string {
  return `${n.toLocaleString('en')} ${n === 1 ? one : many}`
}

const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' })
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' })
const dayAndYear = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric' })

/** 14:05 today, else 3 Mar, else 3 Mar 2024. */
export function when(time: string, now = new Date()): string {
  const t = new Date(time)
  if (Number.isNaN(t.getTime())) return ''
  if (t.toDateString() === now.toDateString()) return clock.format(t)
  return (t.getFullYear() === now.getFullYear() ? day : dayAndYear).format(t)
}

/** The group of a list by age that a time belongs to. */
export function age(time: string, now = new Date()): string {
  const midnight = new Date(now.getFullYear(), now.getMonth(), now.getDate()).getTime()
  const days = Math.ceil((midnight - new Date(time).getTime()) / 86_400_000)
  if (!(days > 0)) return 'Today'
  if (days === 1) return 'Yesterday'
  if (days <= 7) return 'Last 7 days'
  if (days <= 30) return 'Last 30 days'
  return 'Older'
}
