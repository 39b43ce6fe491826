package cli_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/tendril-agent/tendril/internal/testkit"
)

var update = flag.Bool("update", false, "write what came into the transcripts and differences")

// TestTranscripts plays the conversations of testdata/acp and testdata/mcp, each
// with the command of that name. A file has
//
//	model     a line for each reply: "sse FILE" and "script FILE" of testdata/cases, "text TEXT", "call NAME ARGUMENTS"
//	client    what the editor, or the other agent, sends. $WORKSPACE is the session's folder, $SID the last session's id, and "include FILE"
//	          stands for the lines of testdata/cases/stdin. A line that begins with # is not sent:
//	          "# wait for the first session/update", "# wait for the answer to ID", "# CRLF", "# no end" (of the last line)
//	wire      all that the agent sent, written by -update, with what differs from run to run replaced
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/[am]cp/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	for _, file := range files {
		command := filepath.Base(filepath.Dir(file))
		t.Run(command+"/"+strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			section := func(name string) *txtar.File {
				i := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == name })
				if i < 0 {
					t.Fatalf("%s has no section %s", file, name)
				}
				return &archive.Files[i]
			}
			p := testkit.NewProvider(t, replies(t, string(section("model").Data))...)
			c := newSandboxed(t, p).client(command)
			got := play(c, string(section("client").Data))
			wire := section("wire")
			if *update {
				wire.Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(wire.Data) {
				t.Errorf("-want +got\n%s\n%s", diff.Diff("want", wire.Data, "got", []byte(got)), c.s.errs.String())
			}
		})
	}
}

func replies(t *testing.T, script string) []testkit.Reply {
	t.Helper()
	var all []testkit.Reply
	for line := range strings.Lines(script) {
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch kind {
		case "sse":
			all = append(all, testkit.Case(t, "../../testdata/cases", rest))
		case "script":
			all = append(all, testkit.CaseScript(t, "../../testdata/cases", rest).Steps...)
		case "text":
			all = append(all, testkit.OpenAIText(rest))
		case "call":
			name, args, _ := strings.Cut(rest, " ")
			all = append(all, testkit.OpenAICalls(testkit.Call{ID: fmt.Sprintf("call_%d", len(all)+1), Name: name, Args: args}))
		default:
			t.Fatalf("what is %q?", line)
		}
	}
	return all
}

// play sends the lines of a client and returns what came, in order.
func play(c *acpClient, script string) string {
	c.t.Helper()
	end, noEnd, sid := "\n", false, ""
	var sids []string
	for line := range strings.Lines(script) {
		line = strings.TrimSuffix(line, "\n")
		if name, ok := strings.CutPrefix(line, "include "); ok {
			included, err := os.ReadFile(filepath.Join("../../testdata/cases/stdin", name))
			if err != nil {
				c.t.Fatal(err)
			}
			line = strings.TrimSuffix(string(included), "\n")
		}
		for line := range strings.SplitSeq(line, "\n") {
			line = strings.TrimSuffix(line, "\r")
			if strings.Contains(line, "$SID") && sid == "" {
				sid = c.next("a session", func(m acpMessage) bool { return m.Result.SessionID != "" }).Result.SessionID
				sids = append(sids, sid)
			}
			line = strings.NewReplacer("$SID", sid, "/WORKSPACE", c.folder, "$WORKSPACE", c.folder).Replace(line)
			answer, waits := strings.CutPrefix(line, "# wait for the answer to ")
			switch {
			case waits:
				if m := c.answer(answer); m.Result.SessionID != "" {
					sid = m.Result.SessionID
					sids = append(sids, sid)
				}
			case line == "# wait for the first session/update":
				c.next("an update", func(m acpMessage) bool { return m.Method == "session/update" })
			case line == "# CRLF":
				end = "\r\n\r\n"
			case line == "# no end":
				noEnd = true
			case strings.HasPrefix(line, "#"):
				c.t.Fatalf("what is %q?", line)
			case noEnd:
				if _, err := c.in.Write([]byte(line)); err != nil {
					c.t.Fatal(err)
				}
			default:
				c.send(line + strings.TrimSuffix(end, "\n"))
			}
		}
	}
	rest, _ := c.end()
	var out strings.Builder
	for _, m := range append(c.seen, rest...) {
		out.WriteString(normalized(c, m.raw, sids) + "\n")
	}
	return out.String()
}

// normalized is a line with what differs from run to run replaced.
func normalized(c *acpClient, line string, sids []string) string {
	for _, sid := range sids {
		line = strings.ReplaceAll(line, sid, "$SID")
	}
	line = strings.NewReplacer(c.folder, "$WORKSPACE", c.s.ws, "$REGISTRY").Replace(line)
	decoder := json.NewDecoder(strings.NewReader(line))
	decoder.UseNumber()
	var m any
	if err := decoder.Decode(&m); err != nil {
		c.t.Error(err)
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(withoutTimes(m)); err != nil {
		c.t.Error(err)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

func withoutTimes(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			switch key {
			case "ms": // left out when it is 0
				delete(v, key)
			case "durationMs", "updatedAt", "version", "rawOutput":
				v[key] = "…"
			default:
				v[key] = withoutTimes(value)
			}
		}
	case []any:
		for i := range v {
			v[i] = withoutTimes(v[i])
		}
	case string: // a result in JSON
		return milliseconds.ReplaceAllString(v, `"ms":"…"`)
	}
	return v
}

var milliseconds = regexp.MustCompile(`"ms":\d+`)
