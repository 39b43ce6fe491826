package catalog

import (
	"strings"
	"testing"

	"charm.land/catwalk/pkg/catwalk"
)

// TestModels_PlausiblePrices goes over the whole catalogue.
func TestModels_PlausiblePrices(t *testing.T) {
	for provider := range sources {
		models := Models(provider)
		if len(models) == 0 {
			t.Errorf("%s: no models", provider)
		}
		reads := 0
		for _, m := range models {
			p := m.Price
			if m.ID == "" || m.Context <= 0 {
				t.Errorf("%s %q: context %d", provider, m.ID, m.Context)
			}
			if (p.Input == nil) != (p.Output == nil) || p.Input == nil && (p.CacheRead != nil || p.CacheWrite != nil) {
				t.Errorf("%s %s: a price in part", provider, m.ID)
			}
			if p.Input == nil {
				t.Logf("%s %s: no price", provider, m.ID)
				continue
			}
			if *p.Input == 0 {
				if !strings.HasSuffix(m.ID, ":free") || *p.Output != 0 || *p.CacheRead != 0 || *p.CacheWrite != 0 {
					t.Errorf("%s %s: free", provider, m.ID)
				}
				continue
			}
			if *p.Output < *p.Input || *p.Output > 20*(*p.Input) {
				t.Errorf("%s %s: output %v for input %v", provider, m.ID, *p.Output, *p.Input)
			}
			if p.CacheRead != nil {
				reads++
				if *p.CacheRead <= 0 || *p.CacheRead >= *p.Input {
					t.Errorf("%s %s: cache read %v for input %v", provider, m.ID, *p.CacheRead, *p.Input)
				}
			}
			if p.CacheWrite != nil && (*p.CacheWrite < *p.Input || *p.CacheWrite > 2*(*p.Input)) {
				t.Errorf("%s %s: cache write %v for input %v", provider, m.ID, *p.CacheWrite, *p.Input)
			}
		}
		if reads < len(models)/2 {
			t.Errorf("%s: only %d of %d models have the price of a cache read", provider, reads, len(models))
		}
	}
}

// TestPrice has a line for each way in which catwalk fills its files.
func TestPrice(t *testing.T) {
	const unknown = -1
	for name, c := range map[string]struct {
		provider                    string
		in, out, inCached, outCache float64
		input, output, read, write  float64
	}{
		"anthropic":                  {"anthropic", 3, 15, 3.75, 0.3, 3, 15, 0.3, 3.75},
		"bedrock":                    {"bedrock", 3.3, 16.5, 4.125, 0.33, 3.3, 16.5, 0.33, 4.125},
		"openai, read in the first":  {"openai", 5, 30, 0.5, 0, 5, 30, 0.5, unknown},
		"openai, read in both":       {"openai", 1.25, 10, 0.125, 0.125, 1.25, 10, 0.125, unknown},
		"openai, read in the second": {"openai", 2.5, 10, 0, 1.25, 2.5, 10, 1.25, unknown},
		"openai, read and write":     {"openai", 5, 30, 6.25, 0.5, 5, 30, 0.5, 6.25},
		"openai, neither":            {"openai", 30, 180, 0, 0, 30, 180, unknown, unknown},
		"openai, two that differ":    {"openai", 5, 30, 0.5, 0.6, 5, 30, unknown, unknown},
		"gemini, output price twice": {"gemini", 0.75, 3.75, 0.075, 3.75, 0.75, 3.75, 0.075, unknown},
		"gemini, price of storage":   {"gemini", 1.5, 9, 0, 1, 1.5, 9, unknown, unknown},
		"openrouter, odd write":      {"openrouter", 1.25, 10, 0.375, 0.125, 1.25, 10, 0.125, unknown},
		"openrouter, read is input":  {"openrouter", 0.75, 1, 0, 0.75, 0.75, 1, unknown, unknown},
		"no price":                   {"openai", 0, 0, 0, 0, unknown, unknown, unknown, unknown},
		"half a price":               {"openai", 1, 0, 0.1, 0.1, unknown, unknown, unknown, unknown},
		"binary fractions":           {"openai", 0.39999999999999997, 1.5999999999999999, 0, 0.09999999999999999, 0.4, 1.6, 0.1, unknown},
	} {
		p := price(c.provider, catwalk.Model{ID: "m", CostPer1MIn: c.in, CostPer1MOut: c.out, CostPer1MInCached: c.inCached, CostPer1MOutCached: c.outCache})
		for part, v := range map[string]struct {
			got  *float64
			want float64
		}{"input": {p.Input, c.input}, "output": {p.Output, c.output}, "read": {p.CacheRead, c.read}, "write": {p.CacheWrite, c.write}} {
			if v.want == unknown && v.got != nil || v.want != unknown && (v.got == nil || *v.got != v.want) {
				t.Errorf("%s: %s is %v, want %v", name, part, v.got, v.want)
			}
		}
	}
}

func TestFind(t *testing.T) {
	for _, c := range []struct {
		provider, model, id string
		input               float64 // 0: not known
	}{
		{"anthropic", "claude-sonnet-4-6", "claude-sonnet-4-6", 3},
		{"anthropic", "claude-sonnet-4-6-20260217", "claude-sonnet-4-6", 3},
		{"anthropic", "claude-sonnet-4-5", "claude-sonnet-4-5-20250929", 3},
		{"anthropic", "claude-sonnet-4-5-latest", "claude-sonnet-4-5-20250929", 3},
		{"anthropic", "claude-opus-4-1", "claude-opus-4-1-20250805", 15},
		{"anthropic", "claude-opus-4-0", "claude-opus-4-20250514", 15},
		{"openai", "gpt-5.1", "gpt-5.1", 1.25},
		{"openai", "gpt-5.1-2025-11-13", "gpt-5.1", 1.25},
		{"openai", "gpt-4o-2024-11-20", "gpt-4o", 2.5},
		{"openai", "gpt-4o-2024-05-13", "gpt-4o", 0},
		{"gemini", "gemini-2.5-pro", "gemini-2.5-pro", 1.25},
		{"gemini", "models/gemini-2.5-pro", "gemini-2.5-pro", 1.25},
		{"azure", "gpt-5", "gpt-5", 1.25},
		{"openrouter", "anthropic/claude-sonnet-4.6", "anthropic/claude-sonnet-4.6", 3.3},
		{"openrouter", "anthropic/claude-sonnet-4.6:nitro", "anthropic/claude-sonnet-4.6", 0},
		{"openrouter", "anthropic/claude-sonnet-4.6:floor", "anthropic/claude-sonnet-4.6", 0},
		{"openrouter", "anthropic/claude-sonnet-4.6:online", "anthropic/claude-sonnet-4.6", 0},
		{"openrouter", "qwen/qwen-plus-2025-07-28:thinking", "qwen/qwen-plus-2025-07-28:thinking", 0.26},
		{"bedrock", "us.anthropic.claude-sonnet-4-6", "us.anthropic.claude-sonnet-4-6", 3},
		{"bedrock", "eu.anthropic.claude-sonnet-4-6", "eu.anthropic.claude-sonnet-4-6", 3.3},
		{"bedrock", "global.anthropic.claude-sonnet-4-6", "us.anthropic.claude-sonnet-4-6", 3},
		{"bedrock", "us.anthropic.claude-sonnet-4-6-v1:0", "us.anthropic.claude-sonnet-4-6", 3},
		{"bedrock", "eu.anthropic.claude-opus-4-6-v1:0", "eu.anthropic.claude-opus-4-6-v1", 5.5},
		{"bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", 3},
		{"bedrock", "jp.anthropic.claude-sonnet-4-5-20250929-v1:0", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", 0},
		{"bedrock", "apac.anthropic.claude-sonnet-4-6", "us.anthropic.claude-sonnet-4-6", 0},
		{"bedrock", "au.anthropic.claude-sonnet-4-6", "us.anthropic.claude-sonnet-4-6", 0},
		{"bedrock", "anthropic.claude-haiku-4-5-20251001-v1:0", "us.anthropic.claude-haiku-4-5-20251001-v1:0", 0},
		{"bedrock", "arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-haiku-4-5-20251001-v1:0", "us.anthropic.claude-haiku-4-5-20251001-v1:0", 0},
		{"bedrock", "arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.anthropic.claude-sonnet-4-6", "eu.anthropic.claude-sonnet-4-6", 3.3},
	} {
		m, ok := Find(c.provider, c.model)
		if !ok || m.ID != c.id {
			t.Errorf("%s/%s: got %q, %v; want %q", c.provider, c.model, m.ID, ok, c.id)
			continue
		}
		if m.Context <= 0 {
			t.Errorf("%s/%s: no context", c.provider, c.model)
		}
		if known := m.Price.Input != nil; known != (c.input > 0) || known && *m.Price.Input != c.input {
			t.Errorf("%s/%s: input costs %v, want %v", c.provider, c.model, m.Price, c.input)
		}
	}
}

func TestFind_Free(t *testing.T) {
	m, ok := Find("openrouter", "openai/gpt-oss-20b:free")
	if !ok || m.Price.Input == nil || *m.Price.Input != 0 || m.Price.CacheRead == nil {
		t.Errorf("got %+v, %v", m, ok)
	}
}

func TestFind_Nothing(t *testing.T) {
	for _, c := range [][2]string{
		{"anthropic", "claude-sonnet-4-5-20240101"}, // another date than that of the only one
		{"anthropic", "claude-sonnet-9"},
		{"anthropic", ""},
		{"anthropic", "-latest"},
		{"openai", "gpt-5.1-chat-latest"},
		{"openai", "gpt-5.1-2025-11-13-mini"},
		{"azure", "gpt-5-2025-08-07"},
		{"azure", "my-deployment"},
		{"gemini", "models/"},
		{"openrouter", "anthropic/claude-sonnet-4.6:free"},
		{"openrouter", "nobody/nothing:nitro"},
		{"openrouter", ":nitro"},
		{"bedrock", "amazon.nova-pro-v1:0"},
		{"bedrock", "us."},
		{"bedrock", "arn:"},
		{"bedrock", "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/a1b2c3"},
		{"bedrock", "arn:aws:bedrock:us-east-1:123456789012:provisioned-model/us.anthropic.claude-sonnet-4-6"},
		{"ollama", "qwen3"},
		{"demo", ""},
		{"", ""},
	} {
		if m, ok := Find(c[0], c[1]); ok {
			t.Errorf("%s/%s finds %q", c[0], c[1], m.ID)
		}
	}
}

func TestModels_AreACopy(t *testing.T) {
	Models("anthropic")[0].ID = "changed"
	if Models("anthropic")[0].ID == "changed" {
		t.Error("the catalogue was changed")
	}
}

func FuzzFind(f *testing.F) {
	for _, m := range []string{"claude-sonnet-4-5", "arn:a:b:c:d:inference-profile/us.x", ":nitro", "-0", "us.anthropic.claude-sonnet-4-6-v1:0"} {
		f.Add(m)
	}
	f.Fuzz(func(t *testing.T, model string) {
		for provider := range sources {
			if m, ok := Find(provider, model); ok != (m.ID != "") {
				t.Errorf("%s/%s: %q, %v", provider, model, m.ID, ok)
			}
		}
	})
}
