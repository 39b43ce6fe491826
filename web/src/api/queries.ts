// What is fetched rather than told by events. The host's events say when a list is stale.

import { QueryClient, useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { APIError, path, request } from './client'
import type { Capability, Doctor, KeyList, ModelList, ProviderList, SessionList, Settings, Setup } from './types'

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 30_000,
      refetchOnWindowFocus: false,
      retry: (count, error) => count < 2 && error instanceof APIError && error.status === 0,
    },
  },
})

export const useSessions = (query: string) =>
  useInfiniteQuery({
    queryKey: ['sessions', query],
    queryFn: ({ pageParam, signal }) => request<SessionList>('GET', `/sessions?limit=50&query=${encodeURIComponent(query)}&after=${encodeURIComponent(pageParam)}`, undefined, signal),
    initialPageParam: '',
    getNextPageParam: (page) => page.next || undefined,
    placeholderData: (before) => before,
  })

export const useSetup = (enabled = true) =>
  useQuery({ queryKey: ['settings', 'setup'], queryFn: ({ signal }) => request<Setup>('GET', '/setup', undefined, signal), enabled })

export const useSettings = () => useQuery({ queryKey: ['settings'], queryFn: ({ signal }) => request<Settings>('GET', '/settings', undefined, signal) })

export const useProviders = (enabled = true) =>
  useQuery({ enabled, queryKey: ['settings', 'providers'], queryFn: async ({ signal }) => (await request<ProviderList>('GET', '/providers', undefined, signal)).providers ?? [] })

export const useModels = (provider: string) =>
  useQuery({ queryKey: ['settings', 'models', provider], queryFn: ({ signal }) => request<ModelList>('GET', path`/models?provider=${provider}`, undefined, signal), enabled: provider !== '' })

export const useCapability = (name: string) =>
  useQuery({ queryKey: ['capabilities', name], queryFn: ({ signal }) => request<Capability>('GET', path`/capabilities/${name}`, undefined, signal), enabled: name !== '' })

export const useKeys = () =>
  useQuery({ queryKey: ['settings', 'keys'], queryFn: async ({ signal }) => (await request<KeyList>('GET', '/keys', undefined, signal)).keys ?? [] })

export const useDoctor = () => useQuery({ queryKey: ['doctor'], queryFn: ({ signal }) => request<Doctor>('GET', '/doctor', undefined, signal), staleTime: Infinity })

/** The title of a session, as the list has it. */
export function useTitle(session: string): string | undefined {
  const list = useSessions('')
  return list.data?.pages.flatMap((p) => p.sessions ?? []).find((s) => s.id === session)?.title
}
