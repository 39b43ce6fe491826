//go:build soak && linux

package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// traces is what runs could leave behind on this machine.
type traces struct{ descriptors, mounts, processes, folders, goroutines, networks int }

func lookForTraces(t *testing.T) traces {
	t.Helper()
	count := func(pattern string) int {
		list, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	networks := map[string]bool{}
	links, _ := filepath.Glob("/proc/[0-9]*/ns/net")
	for _, link := range links {
		if ns, err := os.Readlink(link); err == nil {
			networks[ns] = true
		}
	}
	return traces{
		descriptors: count("/proc/self/fd/*"), mounts: strings.Count(string(mounts), "\n"), processes: len(children(os.Getpid())),
		folders: count(filepath.Join(os.TempDir(), "tendril-*")), goroutines: runtime.NumGoroutine(), networks: len(networks),
	}
}

// TestSoak_RunsLeaveNothing makes 5,000 runs that end in every way.
func TestSoak_RunsLeaveNothing(t *testing.T) {
	net := newInternet(t, []string{"allowed.test"})
	runner := newRunner(t)
	runner.Resolver, runner.Dial = net, net.dial
	if layer := runner.Layer(t.Context()); !layer.On {
		t.Skip("no operating system layer here: ", layer.Why)
	}
	ways := []struct {
		source  string
		timeout time.Duration
		cancel  bool
	}{
		{source: `export default () => 1`},
		{source: `throw new Error("x")`},
		{source: `Deno.exit(3)`},
		{source: `export default async () => await (await fetch("http://allowed.test/json")).text()`},
		{source: `Deno.makeTempFileSync(); await new Promise((r) => setTimeout(r, 60_000))`, timeout: 150 * time.Millisecond},
		{source: `for (;;);`, timeout: 100 * time.Millisecond},
		{source: `await new Promise((r) => setTimeout(r, 60_000))`, cancel: true},
		{source: `import process from "node:process"; process.abort()`},
	}
	ws := t.TempDir()
	work := make(chan int)
	done := make(chan error)
	for range 4 {
		go func() {
			for n := range work {
				way := ways[n%len(ways)]
				ctx, cancel := context.WithCancel(t.Context())
				if way.cancel {
					time.AfterFunc(time.Duration(n%100)*time.Millisecond, cancel)
				}
				if n%3 == 0 {
					runner.Prepare(ws)
				}
				_, err := runner.Run(ctx, Job{
					Name: "soak", Source: []byte(fmt.Sprintf("// %d\n%s", n, way.source)), Workspace: ws,
					Grant: Grant{Net: []string{"allowed.test"}}, Limits: Limits{Timeout: way.timeout},
				})
				cancel()
				if err != nil {
					t.Error(n, err)
				}
			}
			done <- nil
		}()
	}
	before := lookForTraces(t)
	for n := range 5000 {
		work <- n
	}
	close(work)
	for range 4 {
		<-done
	}
	runner.Close()
	var after traces
	for range 50 { // namespaces go a moment after their processes
		if after = lookForTraces(t); after.processes == 0 && after.networks <= before.networks {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Logf("before %+v, after %+v", before, after)
	if after.processes > 0 || after.mounts > before.mounts || after.folders > before.folders || after.networks > before.networks ||
		after.descriptors > before.descriptors+5 || after.goroutines > before.goroutines+5 {
		t.Errorf("something is left: before %+v, after %+v", before, after)
	}
	if len(net.escapes) > 0 {
		t.Errorf("it got out: %v", net.escapes[:min(5, len(net.escapes))])
	}
}

func TestSoak_ChangingPolicies(t *testing.T) { changePolicies(t, 3000, uint64(time.Now().UnixNano())) }
