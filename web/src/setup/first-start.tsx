export function FirstStart() {
  return null
}
