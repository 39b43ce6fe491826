package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tendril-agent/tendril/internal/agent"
	"github.com/tendril-agent/tendril/internal/capability"
	"github.com/tendril-agent/tendril/internal/sandbox"
	"github.com/tendril-agent/tendril/internal/terminal"
)

// explain tells on stderr what a run might do and what it did, if it was run
// for that.
func (c *command) explain(x *agent.Execution) {
	if x.Grant == nil {
		return
	}
	row := func(name, text string) {
		lines := strings.Split(terminal.Clean(text), "\n")
		fmt.Fprintf(c.Err, "%-8s %s\n", name, strings.Join(lines, "\n         "))
	}
	row("granted", grantText(*x.Grant))
	row("limits", limitsText(*x.Limits))
	row("layers", layersText(x.Result, *x.Grant))
	row("flags", strings.Join(x.Flags, "\n"))
	row("network", networkText(x.Result, *x.Grant))
	row("peaks", peaksText(x.Peaks)+", "+duration(x.Duration.Milliseconds()))
}

func grantText(g sandbox.Grant) string {
	paths := func(what string, list []string) string {
		switch {
		case list == nil:
			return what + " the workspace but its protected places"
		case len(list) == 0:
			return what + " nothing"
		}
		return what + " " + strings.Join(list, ", ")
	}
	net := "no network"
	if len(g.Net) > 0 {
		net = "network: " + strings.Join(capability.HostNames(g.Net), ", ")
	}
	return net + "\n" + paths("reads", g.Read) + "\n" + paths("writes", g.Write)
}

func limitsText(l sandbox.Limits) string {
	text := fmt.Sprintf("%s, %s of output, %d MB of memory (%d MB of it for JavaScript), %d MB a file, %d MB written, %d new files, %d processes and threads",
		l.Timeout, size(l.OutputBytes), l.RSSMB, l.HeapMB, l.FileMB, l.WrittenMB, l.Files, l.Processes)
	if l.CPU > 0 {
		text += fmt.Sprintf(", %s of processor time", l.CPU)
	}
	return text
}

func layersText(r sandbox.Result, g sandbox.Grant) string {
	layers := []string{"Deno's permissions"}
	if r.OSLayer.On {
		layers = append(layers, "the operating system (namespaces, a file system of its own, system call filter, no capabilities)")
		if len(g.Net) > 0 {
			layers = append(layers, "the egress proxy")
		}
	}
	text := "in force: " + strings.Join(append(layers, "limits"), ", ")
	if !r.OSLayer.On {
		text += "\nnot in force: the operating system layer and the egress proxy: " + r.OSLayer.Why
	}
	return text
}

// networkText tells of each decision, and of what was sent before a connection
// was cut off. Without the egress proxy nobody saw any.
func networkText(r sandbox.Result, g sandbox.Grant) string {
	switch {
	case !r.OSLayer.On && len(g.Net) > 0:
		return "not watched: whom the run contacted, among the hosts that it was granted, is not known without the egress proxy"
	case len(r.Network) == 0:
		return "nothing was contacted"
	}
	var lines []string
	for _, d := range r.Network {
		what := fmt.Sprintf("%s %s:%d", d.Method, d.Host, d.Port)
		reason := strings.TrimPrefix(d.Reason, "tendril: ")
		if !d.Allowed && d.BytesUp+d.BytesDown == 0 {
			lines = append(lines, "refused "+what+": "+reason)
			continue
		}
		word := "allowed"
		if !d.Allowed {
			word = "cut off"
		}
		line := fmt.Sprintf("%s %s at %s, %s sent, %s received", word, what, d.Address, size(d.BytesUp), size(d.BytesDown))
		if reason != "" {
			line += "; " + reason
		}
		lines = append(lines, line)
	}
	for _, host := range slices.Sorted(maps.Keys(r.NetworkUnlisted)) {
		lines = append(lines, fmt.Sprintf("and %d more to %s", r.NetworkUnlisted[host], cmp.Or(host, "other hosts")))
	}
	return strings.Join(lines, "\n")
}

func peaksText(p sandbox.Peaks) string {
	if p == (sandbox.Peaks{}) {
		return "not measured: it was too short, or this system does not tell"
	}
	files := fmt.Sprintf("%d new files", p.NewFiles)
	if p.NewFiles == 0 {
		files = "new files not counted, since the disk lost fewer than the limit"
	}
	return fmt.Sprintf("%s of memory, %s written, %s, %d threads, %d ms of processor time",
		size(p.RSSBytes), size(p.WrittenBytes), files, p.Threads, p.CPU.Milliseconds())
}

// size is a number of bytes as a person reads it.
func size(bytes int64) string {
	switch {
	case bytes < 1<<10:
		return fmt.Sprintf("%d B", bytes)
	case bytes < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
}
