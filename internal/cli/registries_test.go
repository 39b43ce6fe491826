package cli

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestRegistries(t *testing.T) {
	const canary = "npm-canary-token"
	const theirs = "registry=https://npm.example.com/a\n//npm.example.com/a/:_authToken=" + canary + "\n//npm.example.com/b/:_auth=" + canary +
		"\n//other.example.com/:_authToken=other\n//npm.example.com:444/:_authToken=port\n//registry.npmjs.org/:_authToken=public\n"
	for _, tt := range []struct {
		name, npmrc string
		env         []string
		npm, jsr    string
		auth        []string
		err         string
	}{
		{name: "nothing", npm: "", auth: nil},
		{name: "only a login for the public one", npmrc: "//registry.npmjs.org/:_authToken=public\n", auth: []string{"//registry.npmjs.org/:_authToken=public"}},
		{name: "npmrc", npmrc: theirs, npm: "https://npm.example.com/a/", auth: []string{"//npm.example.com/a/:_authToken=" + canary, "//npm.example.com/b/:_auth=" + canary}},
		{
			name: "the environment goes before npmrc", npmrc: theirs, env: []string{"NPM_CONFIG_REGISTRY=https://other.example.com", "JSR_URL=http://127.0.0.1:1/jsr?x#y"},
			npm: "https://other.example.com/", jsr: "http://127.0.0.1:1/jsr/", auth: []string{"//other.example.com/:_authToken=other"},
		},
		{name: "in small letters", env: []string{"npm_config_registry=https://low.example.com/"}, npm: "https://low.example.com/"},
		{
			name: "a user and a password", npmrc: "registry=https://a.example.com\n//a.example.com/:username=me\n//a.example.com/:_password=cGFzcw==\n//a.example.com/:always-auth=true\n",
			npm: "https://a.example.com/", auth: []string{"//a.example.com/:username=me", "//a.example.com/:_password=cGFzcw==", "//a.example.com/:always-auth=true"},
		},
		{
			name: "variables, quotes, comments and odd lines", env: []string{"TOKEN=" + canary},
			npmrc: "; registry=https://no.example.com\n#registry=https://no.example.com\n  registry = \"https://a.example.com/\"  \r\n//a.example.com/:_authToken='${TOKEN}'\n//a.example.com/:x=${NONE}\nnonsense\n=\n@scope:registry=https://no.example.com\n",
			npm:   "https://a.example.com/", auth: []string{"//a.example.com/:_authToken=" + canary, "//a.example.com/:x="},
		},
		{name: "a port is part of the host", npmrc: theirs, env: []string{"NPM_CONFIG_REGISTRY=https://npm.example.com:444/"}, npm: "https://npm.example.com:444/", auth: []string{"//npm.example.com:444/:_authToken=port"}},
		{name: "a value with a line end", env: []string{"TOKEN=a\nregistry=https://evil.example.com", "NPM_CONFIG_REGISTRY=https://a.example.com"}, npmrc: "//a.example.com/:_authToken=${TOKEN}\n", npm: "https://a.example.com/"},
		{name: "a password in the URL", env: []string{"NPM_CONFIG_REGISTRY=https://me:" + canary + "@npm.example.com"}, err: "_authToken=…"},
		{name: "one in npmrc", npmrc: "registry=https://me:" + canary + "@npm.example.com\n", err: "NPM_CONFIG_REGISTRY (or the registry of .npmrc) is not used"},
		{name: "no URL", env: []string{"NPM_CONFIG_REGISTRY=" + canary, "JSR_URL=ftp://" + canary}, err: "no http or https URL"},
		{name: "an unreadable one", env: []string{"NPM_CONFIG_REGISTRY=https://a\x00" + canary}, err: "no http or https URL"},
		{name: "too long", npmrc: "registry=https://a.example.com\n" + strings.Repeat("#"+canary+"\n", 8000), err: "more than 64 KiB"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			user := t.TempDir()
			if err := os.WriteFile(filepath.Join(user, ".npmrc"), []byte(tt.npmrc), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := registries(environment(tt.env), user)
			if text := func(u *url.URL) string {
				if u == nil {
					return ""
				}
				return u.String()
			}; text(got.NPM) != tt.npm || text(got.JSR) != tt.jsr || !slices.Equal(got.NPMAuth, tt.auth) {
				t.Errorf("npm %v, jsr %v, auth %q", got.NPM, got.JSR, got.NPMAuth)
			}
			if (err != nil) != (tt.err != "") || err != nil && (!strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), canary)) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
		})
	}
}

func environment(list []string) func(string) string {
	return func(name string) string {
		for _, v := range list {
			if n, value, _ := strings.Cut(v, "="); n == name {
				return value
			}
		}
		return ""
	}
}

// A workspace comes from anybody: its .npmrc must not choose where modules come
// from, nor who is told the login of the user.
func TestRegistries_NotOfTheWorkspace(t *testing.T) {
	ws := t.TempDir()
	if err := os.WriteFile(filepath.Join(ws, ".npmrc"), []byte("registry=https://evil.example.com\n//registry.npmjs.org/:_authToken=theirs\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(ws)
	for _, env := range [][]string{nil, {"NPM_CONFIG_USERCONFIG="}, {"NPM_CONFIG_USERCONFIG=" + filepath.Join(ws, "missing")}} {
		if got, err := registries(environment(env), t.TempDir()); err != nil || got.NPM != nil || len(got.NPMAuth) > 0 {
			t.Errorf("%q: %+v, %v", env, got, err)
		}
	}
	got, err := registries(environment([]string{"NPM_CONFIG_USERCONFIG=" + filepath.Join(ws, ".npmrc")}), t.TempDir())
	if err != nil || got.NPM == nil {
		t.Errorf("the user's own choice of the file does not count: %+v, %v", got, err)
	}
}

func TestRegistries_Proxy(t *testing.T) {
	for _, tt := range []struct {
		env  []string
		host string
		port uint16
		want string
	}{
		{nil, "npm.example.com", 443, ""},
		{[]string{"HTTPS_PROXY=http://p.example.com:1"}, "npm.example.com", 443, "http://p.example.com:1"},
		{[]string{"https_proxy=http://p.example.com:1"}, "npm.example.com", 8443, "http://p.example.com:1"},
		{[]string{"HTTPS_PROXY=http://p.example.com:1"}, "npm.example.com", 80, ""},
		{[]string{"HTTP_PROXY=http://p.example.com:1"}, "npm.example.com", 80, "http://p.example.com:1"},
		{[]string{"HTTPS_PROXY=http://p.example.com:1", "NO_PROXY=.example.com"}, "npm.example.com", 443, ""},
		{[]string{"HTTPS_PROXY=http://p.example.com:1"}, "127.0.0.1", 443, ""},
		{[]string{"HTTPS_PROXY=socks5://p.example.com:1"}, "npm.example.com", 443, ""},
	} {
		got, err := registries(environment(tt.env), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		if u := got.Proxy(tt.host, tt.port); u != nil {
			text = u.String()
		}
		if text != tt.want {
			t.Errorf("%q, %s:%d: %s, want %s", tt.env, tt.host, tt.port, text, tt.want)
		}
	}
}

func FuzzNPMRC(f *testing.F) {
	for _, seed := range []string{"", "registry=https://a.example.com\n", "//a.example.com/:_authToken=${X}", "a=b=c", "=\n;\n#", "//\n//=\n////=", "\x00=\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "rc")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		rc, err := readNPMRC(path, environment([]string{"X=a\nb"}))
		if err != nil {
			return
		}
		for _, line := range rc.authFor(&url.URL{Host: "a.example.com"}) {
			if !strings.HasPrefix(line, "//a.example.com") || strings.ContainsAny(line, "\r\n") {
				t.Errorf("%q", line)
			}
		}
	})
}
