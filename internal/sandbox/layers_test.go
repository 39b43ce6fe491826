package sandbox

import (
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// TestRunner_LayerIsInForce fails where the operating system layer is missing
// although the system can do it: all else would pass without.
func TestRunner_LayerIsInForce(t *testing.T) {
	runner := newRunner(t)
	if runner.Self == "" {
		t.Skip("without the operating system layer, as asked")
	}
	layer := runner.Layer(t.Context())
	if !layer.On {
		if reason := namespacesMissing(); reason != "" {
			t.Skip("no operating system layer here: ", reason)
		}
		t.Fatal(layer.Why)
	}
	source := `export default () => ({uid: Deno.uid(), host: Deno.hostname(), pid: Deno.pid})`
	got := mustRun(t, runner, Job{Name: "look", Source: []byte(source), Workspace: t.TempDir()})
	if got.Text != `{"uid":1000,"host":"sandbox","pid":1}` {
		t.Error(got.Text)
	}
}

// namespacesMissing says why this system cannot have the layer, "" if it can.
func namespacesMissing() string {
	if runtime.GOOS != "linux" {
		return "not Linux"
	}
	out, err := exec.Command("unshare", "--user", "--map-root-user", "--mount", "--pid", "--net", "--fork", "--mount-proc", "true").CombinedOutput()
	if err != nil {
		return strings.TrimSpace(string(out)) + " " + err.Error()
	}
	return ""
}
