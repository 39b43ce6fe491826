// Where each setting is.

export const sections = [
  { id: 'model', label: 'Model' },
  { id: 'keys', label: 'Keys' },
  { id: 'sandbox', label: 'Sandbox' },
  { id: 'bounds', label: 'Bounds and budgets' },
  { id: 'places', label: 'Where things are' },
  { id: 'doctor', label: 'Doctor' },
] as const

/** Sections by how the paths of their settings begin; the first that fits is the one. */
const starts = [
  ['model', 'model'],
  ['workspace', 'places'],
  ['sandbox.denoPath', 'places'],
  ['sandbox', 'sandbox'],
  ['', 'bounds'],
] as const

/** The section with a setting. */
export function sectionOf(path: string) {
  const id = starts.find(([start]) => path.startsWith(start))![1]
  return sections.find((s) => s.id === id)!
}
