// What the person has opened and closed. Nothing else changes it: a stream never does.

import { create } from 'zustand'

const useFolds = create<Record<string, boolean>>(() => ({}))

/** Whether something is open: as the person chose, else as it is by itself. */
export function useFold(key: string, byItself: boolean): [boolean, () => void] {
  const open = useFolds((s) => s[key]) ?? byItself
  return [open, () => useFolds.setState({ [key]: !open })]
}

/** Reports whether the person has opened any of these. */
export const useAnyOpened = (keys: string[]): boolean => useFolds((s) => keys.some((key) => s[key] === true))
