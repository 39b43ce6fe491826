// Package config is ~/.tendril/config.json: it loads, checks, migrates and saves
// the settings, and chooses the model and the workspace by them.
//
// Secrets are no settings: package secret keeps them.
package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Config is the settings of a user. What the file leaves out has its default,
// or the zero value where there is none.
type Config struct {
	Workspace string // as written: it may begin with ~/
	Model     Model
	Sandbox   Sandbox
	Registry  Registry
	Agent     Agent

	file string // where the settings are, for errors
}

// Model says which model to use.
type Model struct {
	Provider string // empty: look for what is there
	// Blocks has the settings of every provider, by its name.
	Blocks map[string]Block
	// Prices go before those of the catalogue. The keys are "provider/model" or
	// a model's name alone.
	Prices map[string]Prices
}

// Block is the settings of one provider.
type Block struct {
	ModelID string
	BaseURL string // of a compatible endpoint; without a trailing slash; nothing is added to it
	Host    string // ollama: the server, without a trailing slash
	Region  string // bedrock
	Profile string // bedrock

	ContextWindow int // tokens of a request and its reply together; zero: as the catalogue knows
	MaxTokens     int // most tokens of a reply to ask for; zero: the adapter's default
}

// Prices are in USD for a million tokens; nil is not given, zero is free.
type Prices struct {
	Input, Output, CacheRead, CacheWrite *float64
}

// Sandbox bounds what capabilities may do.
type Sandbox struct {
	DenoPath       string // "deno" counts as not set
	AllowedDomains []string
	CAFile         string
	Network        string // "auto", "ask" or "deny"
	Require        string // "os" or "any": the layers without which nothing runs
	Limits         Limits
}

// Limits bound one run. Zero means the sandbox's default.
type Limits struct {
	Timeout                          time.Duration
	OutputBytes                      int
	RSSMB, HeapMB, FileMB, WrittenMB int // in MiB
	Files, Processes                 int
	CPU                              time.Duration
}

// Registry bounds the capabilities of a workspace.
type Registry struct {
	MaxCapabilities int
	ListBytes       int // of the listing that the model sees; zero means the default
}

// Agent bounds a turn.
type Agent struct {
	MaxTurns int
	Timeout  time.Duration // zero means none
	Budget   Budget
}

// Budget is in USD; zero means no limit.
type Budget struct {
	Turn, Session, Day float64
}

// defaults are the settings of a file that says nothing.
const defaults = `{
	"workspace": "~/tendril-workspace",
	"sandbox": {"denoPath": "deno", "timeoutMs": 45000, "allowedDomains": [], "policy": {"network": "auto"}, "require": "any"},
	"registry": {"maxCapabilities": 500},
	"agent": {"maxTurns": 100}
}`

// Load reads the settings in the folder home. Without a file, or without a
// folder (home is empty), they are the defaults. The error matches [ErrConfig]
// and is an [*Error] that tells all problems at once; the file is never changed.
func Load(home string) (*Config, []Warning, error) {
	data, err := readText(home)
	if err != nil {
		return nil, nil, err
	}
	return loadText(home, data)
}

// LoadFile is [Load] with another file in the place of the one in home, which
// must be there. What it says about it is said of the one in home.
func LoadFile(home, path string) (*Config, []Warning, error) {
	data, err := readRegular(path)
	if err != nil {
		return nil, nil, failf("the settings cannot be read: %w", err)
	}
	return loadText(home, data)
}

func loadText(home string, data []byte) (*Config, []Warning, error) {
	doc, migrated, err := decode(home, data)
	if err != nil {
		return nil, nil, err
	}
	cfg, r := interpret(doc)
	if len(r.problems) > 0 {
		return nil, nil, &Error{File: Path(home), Problems: r.problems}
	}
	cfg.file = Path(home)
	if migrated {
		r.warnings = append(r.warnings, Warning{Path: "model", Text: "has the form of an early version and reads as provider bedrock; the next `tendril config set` writes it in today's form"})
	}
	return cfg, r.warnings, nil
}

// Path is where the settings of the folder home are.
func Path(home string) string { return filepath.Join(home, "config.json") }

// readFile reads the document, in today's form. Without a file it is empty.
func readFile(home string) (*object, error) {
	data, err := readText(home)
	if err != nil {
		return nil, err
	}
	doc, _, err := decode(home, data)
	return doc, err
}

// readText reads the file; nil means that there is none.
func readText(home string) ([]byte, error) {
	if home == "" {
		return nil, nil
	}
	data, err := readRegular(Path(home))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, failf("the settings cannot be read: %w", err)
	case data == nil:
		data = []byte{}
	}
	return data, nil
}

// decode parses the text of a file, in today's form; that of no file is empty.
func decode(home string, data []byte) (doc *object, migrated bool, err error) {
	if data == nil {
		return &object{}, false, nil
	}
	if doc, err = parse(data); err != nil {
		return nil, false, failf("%s: %w", Path(home), err)
	}
	return doc, migrate(doc), nil
}

// readRegular reads a file, but no device or pipe, and nothing endless.
func readRegular(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, failf("%s is no regular file", path)
	case info.Size() > maxFileBytes:
		return nil, failf("%s has %d bytes; at most %d are read", path, info.Size(), maxFileBytes)
	}
	return os.ReadFile(path)
}

// migrate changes the flat form of early versions, model: {modelId, region,
// profile?}, to provider bedrock, and reports whether it had to.
func migrate(doc *object) bool {
	model := doc.find("model")
	if model == nil || model.obj == nil || model.obj.find("modelId").isNull() || !model.obj.find("provider").isNull() {
		return false
	}
	for _, provider := range Providers() {
		if !model.obj.find(provider).isNull() {
			return false
		}
	}
	block := &object{}
	for _, key := range []string{"modelId", "region", "profile"} {
		if m := model.obj.find(key); m != nil {
			block.members = append(block.members, *m)
			model.obj.remove(key)
		}
	}
	for _, m := range []member{{key: "provider", raw: quote(Bedrock)}, {key: Bedrock, obj: block}} {
		model.obj.remove(m.key) // a null
		model.obj.members = append(model.obj.members, m)
	}
	return true
}
