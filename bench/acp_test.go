package bench

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tendril-agent/tendril/internal/testkit"
)

// BenchmarkACP is from the start of `tendril acp` to its answer to initialize
// and to the first session/new, and what the process holds then.
func BenchmarkACP(b *testing.B) {
	bin := build(b)
	home, folder := settings(b, "http://127.0.0.1:1"), b.TempDir()
	var ready, session time.Duration
	var resident float64
	for b.Loop() {
		cmd := exec.Command(bin, "acp")
		cmd.Env = append(os.Environ(), "TENDRIL_HOME="+home, "OPENAI_API_KEY=sk-test", "DENO_PATH="+testkit.Deno(b))
		in, err := cmd.StdinPipe()
		if err != nil {
			b.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			b.Fatal(err)
		}
		answers := bufio.NewReader(out)
		start := time.Now()
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		ask := func(line string) time.Duration {
			if _, err := io.WriteString(in, line+"\n"); err != nil {
				b.Fatal(err)
			}
			if answer, err := answers.ReadString('\n'); err != nil || !strings.Contains(answer, `"result"`) {
				b.Fatal(answer, err)
			}
			return time.Since(start)
		}
		ready += ask(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`)
		session += ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":%q,"mcpServers":[]}}`, folder))
		resident += residentOf(b, strconv.Itoa(cmd.Process.Pid))
		in.Close()
		if err := cmd.Wait(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(ready.Microseconds())/1000/float64(b.N), "ms-to-initialize/op")
	b.ReportMetric(float64(session.Microseconds())/1000/float64(b.N), "ms-to-session/op")
	b.ReportMetric(resident/float64(b.N), "MiB")
}
