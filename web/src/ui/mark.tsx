/** The app's sign. */
export function Mark({ size = 20 }: { size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 24 24" fill="none" stroke="currentColor" strokeWidth="2" strokeLinecap="round" aria-hidden="true">
      <path d="M5 21c0-8 3-13 8-13a4 4 0 1 1-4 4c0-2.4 1.8-4 4-4" />
      <path d="M5.4 16.5C4 13 4.2 9 7 4" />
    </svg>
  )
}
