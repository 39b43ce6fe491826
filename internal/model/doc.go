// Package model holds the adapters that implement [agent.Model] for the
// providers: [Anthropic] for the Messages API, [OpenAI] for Chat Completions of
// OpenAI, Ollama and compatible servers.
//
// An adapter uses its vendor's SDK for the types of a request, authentication
// and the request itself. The stream is ours: one reader of server-sent events
// for all (sse.go), and for each API an assembler that turns events into parts,
// because servers differ in how they cut calls into pieces and how they fail.
// What goes out is made valid first (history.go), what goes wrong is classified
// by one table (errors.go) and its text cleaned of credentials (redact.go).
package model
