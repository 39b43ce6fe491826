package capability

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// BenchmarkRegistry is what a registry of 10 to 10,000 capabilities costs, each
// proven, without Deno. TMPDIR says on which disk.
func BenchmarkRegistry(b *testing.B) {
	for _, n := range []int{10, 100, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			opts := stock(b, n)
			b.Run("open", func(b *testing.B) { benchOpen(b, opts) })
			b.Run("held", func(b *testing.B) { benchHeld(b, opts) })
			benchIndex(b, opts)
			r := openWith(b, opts)
			benchReaders(b, r, fmt.Sprintf("cap_%05d", n/2))
			b.Run("register/new", func(b *testing.B) {
				benchRegister(b, opts, func(i int) string { return fmt.Sprintf("new_%05d", i) })
			})
			b.Run("register/update", func(b *testing.B) {
				benchRegister(b, opts, func(int) string { return "cap_00001" })
			})
		})
	}
}

// BenchmarkSeed is a workspace in the seed's format.
func BenchmarkSeed(b *testing.B) {
	opts := testOptions(b)
	all := make([]string, 5000)
	for i := range all {
		all[i] = fmt.Sprintf("tool_%d", i)
	}
	writeTool(b, opts, "index.json", seedIndex(all...))
	for _, name := range all {
		writeTool(b, opts, name+".ts", "console.log(1)")
	}
	b.Run("open", func(b *testing.B) { benchOpen(b, opts) })
	benchReaders(b, openWith(b, opts), "tool_2500")
}

// BenchmarkHistory is a capability that has 1,000 versions.
func BenchmarkHistory(b *testing.B) {
	opts := stock(b, 10)
	for i := range 999 {
		v := stockVersion("cap_00001", number{1, i + 1, 0})
		writeStock(b, opts, v)
	}
	r := openWith(b, opts)
	b.Run("names", func(b *testing.B) {
		for b.Loop() {
			if n := nextNumber(r.root, "cap_00001", nil); n != (number{1, 1000, 0}) {
				b.Fatal(n)
			}
		}
	})
	b.Run("show", func(b *testing.B) {
		for b.Loop() {
			if info, err := r.Show(b.Context(), "cap_00001"); err != nil || len(info.Versions) != 1000 {
				b.Fatal(err)
			}
		}
	})
	b.Run("resolve", func(b *testing.B) {
		for b.Loop() {
			if _, err := r.Resolve(b.Context(), "cap_00001", nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("register", func(b *testing.B) { benchRegister(b, opts, func(int) string { return "cap_00001" }) })
}

// benchOpen is a start: nothing is known of the index yet.
func benchOpen(b *testing.B, opts Options) {
	b.ReportAllocs()
	for b.Loop() {
		r, err := Open(b.Context(), opts)
		if err != nil {
			b.Fatal(err)
		}
		r.Close()
	}
}

// benchHeld is what an open registry keeps in memory once it was searched.
func benchHeld(b *testing.B, opts Options) {
	heap := func() float64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	var held float64
	for b.Loop() {
		before := heap()
		r := openWith(b, opts)
		list(b, r, "forecast of the weather")
		held += heap() - before
		runtime.KeepAlive(r)
	}
	b.ReportMetric(held/float64(b.N)/(1<<20), "MiB")
	b.ReportMetric(0, "ns/op")
}

// benchIndex is the work on the bytes of tools/index.json.
func benchIndex(b *testing.B, opts Options) {
	data, err := os.ReadFile(filepath.Join(opts.Workspace, "tools", "index.json"))
	if err != nil {
		b.Fatal(err)
	}
	ix, err := decodeIndex(data, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("index/decode", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			if _, err := decodeIndex(data, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("index/encode", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			if len(ix.encode()) != len(data) {
				b.Fatal("another length")
			}
		}
	})
}

// benchReaders is what reads a registry that is open, and has been read before.
func benchReaders(b *testing.B, r *Registry, name string) {
	for _, read := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"list/all", func(ctx context.Context) error { _, err := r.List(ctx, ""); return err }},
		{"list/query", func(ctx context.Context) error {
			_, err := r.List(ctx, "forecast of the weather in a city")
			return err
		}},
		{"show", func(ctx context.Context) error { _, err := r.Show(ctx, name); return err }},
		{"resolve", func(ctx context.Context) error { _, err := r.Resolve(ctx, name, nil); return err }},
		{"permissions", func(ctx context.Context) error { _, err := r.Permissions(ctx); return err }},
		{"drift", func(ctx context.Context) error { _, err := r.Drift(ctx); return err }},
	} {
		b.Run(read.what, func(b *testing.B) {
			if err := read.do(b.Context()); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := read.do(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// benchRegister is a registration, and how long its parts take: what the gate
// does without Deno, each file, and the rest, which is reading the index,
// encoding it, and the row of the admission.
func benchRegister(b *testing.B, opts Options, name func(i int) string) {
	parts := map[string]time.Duration{}
	opts.system, opts.Max = &stopwatch{system: systemOf(b, opts), parts: parts}, 1<<20
	r := openWith(b, opts)
	var gate, total time.Duration
	serial := time.Now().UnixNano()
	for i := 0; b.Loop(); i++ {
		def := stockDefinition(name(i))
		start := time.Now()
		a, err := r.Register(b.Context(), def, fmt.Sprintf("// %d-%d\n%s", serial, i, stockSource), Provenance{}, nil)
		if err != nil {
			b.Fatal(err)
		}
		total += time.Since(start)
		for _, s := range a.Evidence.Steps {
			gate += s.Duration
		}
	}
	rest := total - gate
	for what, d := range parts {
		rest -= d
		report(b, d, what)
	}
	report(b, gate, "gate")
	report(b, rest, "rest")
	report(b, total, "all")
	b.ReportMetric(0, "ns/op")
}

func report(b *testing.B, d time.Duration, what string) {
	b.ReportMetric(float64(d.Microseconds())/1000/float64(b.N), what+"-ms")
}

// stopwatch is a system that knows how long each kind of file took.
type stopwatch struct {
	system
	parts   map[string]time.Duration
	scratch time.Duration // since the last rename, which says what of
}

func (s *stopwatch) measure(name string, do func() error) error {
	start := time.Now()
	err := do()
	if took := time.Since(start); name == scratchPath {
		s.scratch += took
	} else {
		s.parts[kindOfFile(name)] += took
	}
	return err
}

func (s *stopwatch) OpenFile(name string, flag int, perm fs.FileMode) (f handle, err error) {
	err = s.measure(name, func() error {
		f, err = s.system.OpenFile(name, flag, perm)
		return err
	})
	return timedHandle{f, name, s}, err
}

func (s *stopwatch) Rename(from, to string) error {
	s.parts[kindOfFile(to)] += s.scratch
	s.scratch = 0
	return s.measure(to, func() error { return s.system.Rename(from, to) })
}

func (s *stopwatch) Remove(name string) error {
	return s.measure(name, func() error { return s.system.Remove(name) })
}

func (s *stopwatch) Mkdir(name string, perm fs.FileMode) error {
	return s.measure(name, func() error { return s.system.Mkdir(name, perm) })
}

type timedHandle struct {
	handle
	name  string
	clock *stopwatch
}

func (h timedHandle) Write(data []byte) (n int, err error) {
	err = h.clock.measure(h.name, func() error {
		n, err = h.handle.Write(data)
		return err
	})
	return n, err
}

func (h timedHandle) Sync() error { return h.clock.measure(h.name, h.handle.Sync) }

func kindOfFile(name string) string {
	switch {
	case name == journalPath, name == scratchPath:
		return "journal"
	case name == indexPath:
		return "index"
	case strings.HasPrefix(name, versionsPath):
		return "version"
	}
	return "copy"
}

// stock is a workspace of n capabilities in our format, each with a version that
// is admitted, and has run once.
func stock(b *testing.B, n int) Options {
	b.Helper()
	opts := testOptions(b)
	opts.Max = 1 << 20
	openWith(b, opts) // makes the tables
	ix := emptyIndex()
	var versions []*version
	for i := range n {
		v := stockVersion(fmt.Sprintf("cap_%05d", i), firstNumber)
		writeStock(b, opts, v)
		writeTool(b, opts, v.Name+".ts", stockSource)
		ix.entries = append(ix.entries, activeEntry(nil, v, StatusActive))
		versions = append(versions, v)
	}
	writeTool(b, opts, "index.json", string(ix.encode()))
	err := opts.DB.Write(b.Context(), func(tx *sql.Tx) error {
		for _, v := range versions {
			_, err := tx.ExecContext(b.Context(), "INSERT INTO admissions VALUES (?,?,?,?,0,?,'','2026-04-11T12:00:00Z')",
				v.Hash, v.Name, v.Version, gateVersion, string(encode(v.Gate)))
			if err != nil {
				return err
			}
			_, err = tx.ExecContext(b.Context(), "INSERT INTO usage VALUES (?,?,?,1,1,'2026-04-11T12:00:00Z')", canonicalPath(opts.Workspace), v.Name, v.Hash)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return opts
}

func writeStock(b *testing.B, opts Options, v *version) {
	b.Helper()
	base := strings.TrimPrefix(versionBase(v.Name, v.ref()), toolsPath+"/")
	writeTool(b, opts, base+".ts", string(v.Source))
	writeTool(b, opts, base+".json", string(indent(encode(v))))
}

var stockSource = "interface Args { city: string; days?: number }\n" + strings.Repeat("// what it does, line by line\n", 30) +
	"export default async ({ city }: Args) => ({ city, forecast: [] });\n"

// stockDefinition is a definition as models write them: an entry of about 1.2 kB.
func stockDefinition(name string) Definition {
	topics := []string{"weather", "currency", "calendar", "invoices", "photos", "translations", "tickets", "recipes"}
	topic := topics[int(name[len(name)-1])%len(topics)]
	return Definition{
		Name:       name,
		Capability: "Looks up the " + topic + " of a place and returns a short table for " + strings.ReplaceAll(name, "_", " ") + ".",
		Triggers: []string{
			"user asks about the " + topic + " of some place", "user wants a forecast for the coming days", "user plans something that depends on " + topic,
		},
		Suppression: []string{"the " + topic + " was looked up in this session already"},
		Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string","description":"name of the city, in any language"},` +
			`"days":{"type":"integer","minimum":1,"maximum":14,"description":"how many days, from today"}},"required":["city"],"additionalProperties":false}`),
		Permissions: &Permissions{Net: []string{"api.example.com"}, Read: []string{"data"}},
		Examples:    []Example{{Args: json.RawMessage(`{"city":"Oslo","days":3}`), Expect: json.RawMessage(`{"contains":"Oslo"}`)}},
	}
}

func stockVersion(name string, n number) *version {
	v := &version{
		Name: name, Version: n.String(), CreatedBy: ByModel, Created: noon, Model: "openai/gpt", Session: "s1",
		Definition: stockDefinition(name), Source: []byte(fmt.Sprintf("// %s\n%s", n, stockSource)),
		Gate: &Evidence{Gate: gateVersion, Steps: []Step{
			{Name: StepShape, State: StepPassed}, {Name: StepModules, State: StepPassed}, {Name: StepPermissions, State: StepPassed}, {Name: StepTypes, State: StepPassed},
		}},
	}
	if n == firstNumber {
		v.Source = []byte(stockSource)
	}
	v.Hash = admissionHash(&v.Definition, v.Source, nil)
	return v
}
