// Package model holds the adapters that implement [agent.Model] for the
// providers: [Anthropic] for the Messages API, [OpenAI] for Chat Completions of
// OpenAI, Ollama and compatible servers, [Bedrock] for ConverseStream.
//
// An adapter uses its vendor's SDK for the types of a request, authentication
// and the request itself (for Bedrock the types are ours: the SDK's would change
// what a model wrote). The stream is ours: a reader of server-sent events
// (sse.go), one of AWS event streams (eventstream.go), a bound on silence
// (stall.go), and for each API an assembler that turns events into parts,
// because servers differ in how they cut calls into pieces and how they fail.
// What goes out is made valid first (history.go), what goes wrong is classified
// by one table (errors.go) and its text cleaned of credentials (redact.go).
package model
