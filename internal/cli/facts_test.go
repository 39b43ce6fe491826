package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tendril-agent/tendril/internal/config"
)

func TestModelFacts(t *testing.T) {
	home := t.TempDir()
	settings := `{"model":{"openrouter":{"contextWindow":50000},"prices":{
		"gpt-5.1":{"input":1},
		"anthropic/claude-sonnet-4-6":{"cacheRead":0.5},
		"claude-sonnet-4-6":{"input":99,"output":99},
		"anthropic/claude-sonnet-4.6":{"input":7,"output":8,"cacheRead":0.7,"cacheWrite":0},
		"local":{"input":0,"output":0}}}}`
	if err := os.WriteFile(filepath.Join(home, "config.json"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, _, err := config.Load(home)
	if err != nil {
		t.Fatal(err)
	}
	const unknown = -1
	for _, c := range []struct {
		provider, model            string
		context                    int64
		input, output, read, write float64
	}{
		{"anthropic", "claude-opus-4-8", 1_000_000, 5, 25, 0.5, 6.25},       // the catalogue
		{"openai", "gpt-5.1", 400_000, 1, unknown, unknown, unknown},        // an input price: nothing of the catalogue
		{"azure", "gpt-5.1", 0, 1, unknown, unknown, unknown},               // a name alone holds for every provider
		{"anthropic", "claude-sonnet-4-6", 200_000, 3, 15, 0.5, 3.75},       // only the cache; provider/model goes first
		{"openrouter", "anthropic/claude-sonnet-4.6", 50_000, 7, 8, 0.7, 0}, // a model's name may have a slash, a price may be zero
		{"openrouter", "nobody/nothing", 50_000, unknown, unknown, unknown, unknown},
		{"ollama", "local", 0, 0, 0, unknown, unknown},
		{"ollama", "qwen3", 0, unknown, unknown, unknown, unknown},
		{"demo", "", 0, 0, 0, unknown, unknown}, // it is no model, and costs nothing
	} {
		size, p := modelFacts(cfg, config.Choice{Provider: c.provider, Model: c.model})
		if size != c.context {
			t.Errorf("%s/%s: context %d, want %d", c.provider, c.model, size, c.context)
		}
		for i, v := range []struct {
			got  *float64
			want float64
		}{{p.Input, c.input}, {p.Output, c.output}, {p.CacheRead, c.read}, {p.CacheWrite, c.write}} {
			if v.want == unknown && v.got != nil || v.want != unknown && (v.got == nil || *v.got != v.want) {
				t.Errorf("%s/%s: price %d is %v, want %v", c.provider, c.model, i, optional(v.got, usd), v.want)
			}
		}
	}
}

func TestTexts(t *testing.T) {
	for n, want := range map[int64]string{1: "1", 999: "999", 4096: "4k", 32768: "33k", 200_000: "200k", 999_499: "999k", 999_500: "1M", 1_000_000: "1M", 1_048_576: "1.05M", 10_000_000: "10M"} {
		if got := tokensText(n); got != want {
			t.Errorf("%d tokens: %s, want %s", n, got, want)
		}
	}
	for v, want := range map[float64]string{0: "$0.00", 3: "$3.00", 2.5: "$2.50", 0.075: "$0.075", 0.0028: "$0.0028"} {
		if got := usd(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}
