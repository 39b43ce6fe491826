package config

import (
	"slices"
	"strings"
	"time"
)

// interpret reads every setting of a document, with the defaults where it says
// nothing.
func interpret(doc *object) (*Config, *reader) {
	r := &reader{}
	top := &section{reader: r, obj: effective(doc)}
	cfg := &Config{
		Workspace: top.text("workspace"),
		Model:     readModel(top.section("model")),
		Sandbox:   readSandbox(top.section("sandbox")),
		Registry:  readRegistry(top.section("registry")),
		Agent:     readAgent(top.section("agent")),
	}
	top.end()
	r.warnSecrets("", doc)
	return cfg, r
}

// effective is doc with the defaults.
func effective(doc *object) *object {
	base, err := parse([]byte(defaults))
	if err != nil { // a constant, and covered by every test
		base = &object{}
	}
	return doc.withDefaults(base)
}

func readModel(s *section) Model {
	m := Model{Provider: s.text("provider"), Blocks: make(map[string]Block), Prices: make(map[string]Prices)}
	if m.Provider != "" && m.Provider != Demo && !IsProvider(m.Provider) {
		s.fail("provider", "%s", unknownProvider(m.Provider))
		m.Provider = ""
	}
	for _, name := range Providers() {
		m.Blocks[name] = readBlock(s.section(name), name)
	}
	prices := s.section("prices")
	for _, model := range prices.obj.members {
		if reason := badModelName(model.key); reason != "" && prices.member(model.key) != nil {
			prices.fail(model.key, "%s", reason)
			continue
		}
		m.Prices[model.key] = readPrices(prices.section(model.key))
	}
	s.end()
	return m
}

func readBlock(s *section, provider string) Block {
	b := Block{ModelID: s.text("modelId")}
	switch provider {
	case Bedrock:
		b.Region, b.Profile = s.text("region"), s.text("profile")
	case Ollama:
		b.Host = s.url("host")
	}
	b.BaseURL = s.url("baseURL")
	b.ContextWindow, b.MaxTokens = s.positive("contextWindow"), s.positive("maxTokens")
	if strings.HasSuffix(b.Host, "/v1") {
		s.fail("host", "must not end in /v1, which is added to it")
	}
	if KeyEnv(provider) != "" && isUnencrypted(b.BaseURL) {
		s.warn("baseURL", "sends your key unencrypted over the network; use https")
	}
	if provider == Azure && b.BaseURL != "" && !strings.HasSuffix(b.BaseURL, "/v1") {
		s.warn("baseURL", "does not end in /openai/v1, where Azure has the API; it looks like %s", exampleAzureURL)
	}
	s.end()
	return b
}

// priceKinds are the settings of a model's price.
var priceKinds = []string{"input", "output", "cacheRead", "cacheWrite"}

func badModelName(name string) string {
	const example = "; it looks like model.prices.gpt-5.1.input"
	switch reason := badText(name); {
	case reason != "":
		return "names no model: it " + reason + example
	case name == "":
		return "names no model: it is empty" + example
	case slices.Contains(priceKinds, name), IsProvider(name):
		return "names no model" + example
	}
	return ""
}

func readPrices(s *section) Prices {
	p := Prices{
		Input:      s.price("input"),
		Output:     s.price("output"),
		CacheRead:  s.price("cacheRead"),
		CacheWrite: s.price("cacheWrite"),
	}
	s.end()
	return p
}

func readSandbox(s *section) Sandbox {
	timeout := s.positive("timeoutMs")
	b := Sandbox{
		DenoPath:       s.text("denoPath"),
		AllowedDomains: s.hosts("allowedDomains"),
		CAFile:         s.text("caFile"),
		Require:        s.choice("require", "os", "any"),
		Limits:         readLimits(s.section("limits")),
	}
	policy := s.section("policy")
	b.Network = policy.choice("network", "auto", "ask", "deny")
	policy.end()
	if b.Limits.Timeout == 0 {
		b.Limits.Timeout = milliseconds(timeout)
	}
	s.end()
	return b
}

func readLimits(s *section) Limits {
	l := Limits{
		Timeout:     milliseconds(s.positive("timeoutMs")),
		OutputBytes: s.positive("outputBytes"),
		RSSMB:       s.positive("rssMB"),
		HeapMB:      s.positive("heapMB"),
		FileMB:      s.positive("fileMB"),
		WrittenMB:   s.positive("writtenMB"),
		Files:       s.positive("files"),
		Processes:   s.positive("processes"),
		CPU:         time.Duration(s.positive("cpuS")) * time.Second,
	}
	s.end()
	return l
}

func readRegistry(s *section) Registry {
	r := Registry{MaxCapabilities: s.positive("maxCapabilities"), ListBytes: s.positive("listBytes")}
	s.end()
	return r
}

func readAgent(s *section) Agent {
	a := Agent{MaxTurns: s.positive("maxTurns"), Timeout: milliseconds(s.positive("timeoutMs"))}
	budget := s.section("budget")
	a.Budget = Budget{
		Turn:    budget.amount("turnUSD"),
		Session: budget.amount("sessionUSD"),
		Day:     budget.amount("dayUSD"),
	}
	budget.end()
	s.end()
	return a
}

func milliseconds(n int) time.Duration { return time.Duration(n) * time.Millisecond }
