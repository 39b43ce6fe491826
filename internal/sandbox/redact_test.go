package sandbox

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"
)

// spellings are the ways to write a value that a Redactor knows, each inside of
// other text.
func spellings(value string) map[string]string {
	quoted, _ := json.Marshal(value)
	twice, _ := json.Marshal(string(quoted))
	var all, upper, escaped strings.Builder
	for _, b := range []byte(value) {
		fmt.Fprintf(&all, "%%%02x", b)
		fmt.Fprintf(&upper, "%02X", b)
	}
	for _, c := range value {
		if c < 0x10000 {
			fmt.Fprintf(&escaped, `\u%04X`, c)
		} else {
			escaped.WriteRune(c)
		}
	}
	out := map[string]string{
		"plain": value, "json": string(quoted), "json twice": string(twice), "query": url.QueryEscape(value), "path": url.PathEscape(value),
		"percent": all.String(), "query twice": url.QueryEscape(url.QueryEscape(value)), "hex": hex.EncodeToString([]byte(value)), "HEX": upper.String(),
		"unicode": escaped.String(), "html": html.EscapeString(value), "lower case host": strings.ToLower(value) + ".example.com",
	}
	for shift := range 6 {
		text := []byte(strings.Repeat("x", shift) + value + strings.Repeat("y", shift%4))
		out[fmt.Sprintf("base64 %d", shift)] = base64.StdEncoding.EncodeToString(text)
		out[fmt.Sprintf("base64url %d", shift)] = base64.RawURLEncoding.EncodeToString(text)
	}
	return out
}

func TestRedactor_Spellings(t *testing.T) {
	for _, value := range []string{"canary-7f3a9b", `a"b\c/d e&f<g>h'i`, "pässwörd🔑x", "0123456789abcdef0123456789abcdef", "++//==++//==", strings.Repeat("long", 600)} {
		r := NewRedactor(map[string]string{"TOKEN": value})
		for name, text := range spellings(value) {
			got := r.Text("before " + text + " after")
			if !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " after") || !strings.Contains(got, "[secret TOKEN]") {
				t.Errorf("%.20s, %s: %.200q", value, name, got)
			}
			if leaks(got, value) {
				t.Errorf("%.20s, %s leaks: %.200q", value, name, got)
			}
		}
	}
	if r := NewRedactor(map[string]string{"SHORT": "abc"}); r.Text("abcabc") != "abcabc" {
		t.Error("a short one wrecks texts")
	}
}

// leaks reports whether a text holds much of a value, in whatever encoding.
func leaks(text, value string) bool {
	texts := []string{text}
	if decoded, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(strings.TrimSuffix(text, " after"), "before ")); err == nil {
		texts = append(texts, string(decoded))
	}
	for _, text := range texts {
		for i := 0; i+5 <= len(value); i++ {
			if part := value[i : i+5]; utf8.ValidString(part) && strings.Contains(strings.ReplaceAll(text, "[secret TOKEN]", ""), part) {
				return true
			}
		}
	}
	return false
}

const mark = "[secret TOKEN]"

func FuzzRedactor(f *testing.F) {
	f.Add("canary-7f3a9b", "before", "after")
	f.Fuzz(func(t *testing.T, value, before, after string) {
		if len(value) < MinSecret || len(value) > 200 || !utf8.ValidString(value) || strings.ContainsRune(value, 0) || strings.Contains(mark, value) {
			return
		}
		r := NewRedactor(map[string]string{"TOKEN": value})
		for name, text := range spellings(value) {
			got := r.Text(strings.ToValidUTF8(before, "") + text + strings.ToValidUTF8(after, ""))
			if strings.Contains(got, text) && !strings.Contains(mark, text) || !utf8.ValidString(got) {
				t.Errorf("%s of %q: %q", name, value, got)
			}
		}
	})
}

// Nothing that comes from a run holds its secret, however it was printed, and the
// server that it is for gets it as it is.
func TestRunner_Secrets(t *testing.T) {
	const canary = "canary/7f3a+9b=Q"
	runner := newRunner(t)
	source := `
		const s = Deno.env.get("TOKEN")!;
		const encode = (t: string) => [t, btoa(t), btoa("x" + t), encodeURIComponent(t), JSON.stringify({ t }), [...t].map((c) => c.charCodeAt(0).toString(16).padStart(2, "0")).join("")];
		for (const t of encode(s)) { console.log(t); console.error("err", t); }
		Deno.stdout.writeSync(new TextEncoder().encode(s.slice(0, 7)));
		await new Promise((r) => setTimeout(r, 30));
		Deno.stdout.writeSync(new TextEncoder().encode(s.slice(7) + "\n"));
		Deno.writeTextFileSync(__workspace + "/kept", s);
		if ((args as { fail?: boolean }).fail) throw new Error("with " + s);
		if ((args as { flood?: number }).flood) for (let i = 0; i < 40000; i++) console.log("x".repeat(i % 17) + s);
		export default () => ({ value: s, length: s.length, [s]: encode(s) });`
	ws := t.TempDir()
	for _, args := range []string{`{}`, `{"fail":true}`, `{"flood":1}`} {
		var live strings.Builder
		got := mustRun(t, runner, Job{
			Name: "cap", Source: []byte(source), Args: []byte(args), Workspace: ws, Secrets: map[string]string{"TOKEN": canary},
			Output: func(stream, line string) { live.WriteString(line + "\n") },
		})
		raw, _ := json.Marshal(got)
		for name, text := range map[string]string{"result": string(raw), "text": got.Text, "value": string(got.Value), "error": got.Error, "stdout": got.Stdout, "stderr": got.Stderr, "live": live.String()} {
			for spelling, written := range spellings(canary) {
				if spelling != "lower case host" && strings.Contains(text, strings.Trim(written, `"`)) {
					t.Errorf("%s: the %s holds it (%s): %.300s", args, name, spelling, text)
				}
			}
			if strings.Contains(text, canary[:9]) || strings.Contains(text, canary[7:]) {
				t.Errorf("%s: the %s holds a part of it", args, name)
			}
		}
		if args == `{}` && !strings.Contains(got.Text, `"length":16`) {
			t.Errorf("it did not get it: %s", got.Text)
		}
	}
	other := Job{Name: "other", Source: []byte(`export default () => [Deno.env.get("TOKEN") ?? "none", Deno.readTextFileSync(__workspace + "/kept")]`), Workspace: ws}
	other.Hide = map[string]string{"TOKEN": canary}
	if got := mustRun(t, runner, other); got.Text != `["none","[secret TOKEN]"]` {
		t.Errorf("another one: %s", got.Text)
	}
}
