export function SettingsScreen(_: { section?: string }) {
  return null
}
