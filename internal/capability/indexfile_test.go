package capability

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
)

// FuzzDecodeObject compares with the standard library's reader of tokens, and the
// layout with its own.
func FuzzDecodeObject(f *testing.F) {
	for _, seed := range []string{
		`{}`, ` { "a" : [ ] , "b":{ }, "a":1e-3 } `, `{"a":"\"]}\\","\u0061":null,"é":"\ud800"}`, `{"a":1,}`, `{"a":1}x`, `{"a"`, `[{}]`, `"x"`, `{"a":{"b":[1,true,{"c":"\\"}]}}`,
		"{\"\x80\":\"\x7f\"}", `{"a" 1}`, `{"a":1 "b":2}`, `{"a":[1 2]}`, `{"a":01}`, `{"a":nul}`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var again, wantAgain []string
		got, err := decodeObject(data, func(key string) { again = append(again, key) })
		want, wantErr := tokenObject(data, func(key string) { wantAgain = append(wantAgain, key) })
		if (err == nil) != (wantErr == nil) || errors.Is(err, errNotObject) && !errors.Is(wantErr, errNotObject) {
			t.Fatalf("%q: %v; the standard library says %v", data, err, wantErr)
		}
		if err != nil {
			return
		}
		if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(again, wantAgain) {
			t.Errorf("%q is %q, want %q; twice %q, want %q", data, got, want, again, wantAgain)
		}
		var compact, indented bytes.Buffer
		if err := errors.Join(json.Compact(&compact, data), json.Indent(&indented, compact.Bytes(), "", "  ")); err != nil {
			t.Fatal(err)
		}
		if laid := indent(data); string(laid) != indented.String()+"\n" {
			t.Errorf("%q is laid out as %s, want %s", data, laid, indented.String())
		}
	})
}

// tokenObject is decodeObject with the tokens of the standard library.
func tokenObject(data []byte, seen func(string)) (object, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	if token, err := dec.Token(); err != nil {
		return nil, err
	} else if token != json.Delim('{') {
		return nil, errNotObject
	}
	var o object
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		m := member{key: fmt.Sprint(key)}
		if err := dec.Decode(&m.value); err != nil {
			return nil, err
		}
		found := false
		for i := range o {
			if o[i].key == m.key {
				o[i].value, found = m.value, true
				seen(m.key)
			}
		}
		if !found {
			o = append(o, m)
		}
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something after the end")
	}
	return o, nil
}

// An object with very many keys, some of them twice, is read in one go.
func TestDecodeObject_ManyKeys(t *testing.T) {
	var b strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&b, `,"k%d":%d`, i%150_000, i)
	}
	twice := 0
	o, err := decodeObject([]byte("{"+b.String()[1:]+"}"), func(string) { twice++ })
	if err != nil || len(o) != 150_000 || twice != 50_000 || string(o.get("k7")) != "150007" {
		t.Errorf("%d keys, %d twice, %s, %v", len(o), twice, o.get("k7"), err)
	}
}

// FuzzDecodeIndex_Changed: what was read before makes no difference to what is
// read, and reading changes nothing of it.
func FuzzDecodeIndex_Changed(f *testing.F) {
	f.Add([]byte(seedIndex("a", "b", "c")), []byte(seedIndex("b", "x", "c", "b")))
	f.Add([]byte(seedIndex("a", "a")), []byte(strings.Replace(seedIndex("a", "a"), "Does it", "Does that", 1)))
	f.Add([]byte(`{"version":"1","capabilities":[7]}`), []byte("<<<<<<< a\n"+seedIndex("a")+"\n=======\n"+seedIndex("b")+"\n>>>>>>> b\n"))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		before, err := decodeIndex(first, nil)
		if err != nil {
			return
		}
		was := describeIndex(before)
		fresh, errFresh := decodeIndex(second, nil)
		changed, err := decodeIndex(second, before)
		if fmt.Sprint(err) != fmt.Sprint(errFresh) {
			t.Fatalf("%v, fresh %v", err, errFresh)
		}
		if err == nil && describeIndex(changed) != describeIndex(fresh) {
			t.Errorf("got %s\nwant %s", describeIndex(changed), describeIndex(fresh))
		}
		if now := describeIndex(before); now != was {
			t.Errorf("the index before was changed: %s\nwas %s", now, was)
		}
	})
}

func describeIndex(ix *index) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q %q\n", ix.fields.encode(), ix.bad, ix.conflict)
	for _, e := range ix.entries {
		fmt.Fprintf(&b, "%s %s %s %s %q %v %q %q\n", e.fields.encode(), encode(e.def), e.version, e.hash, e.status, e.pending, e.conflict, e.problem)
	}
	for _, d := range ix.disputes {
		fmt.Fprintf(&b, "%+v\n", d.name)
	}
	return b.String()
}

// What a registry knows after its own commits is what a new one reads, and the
// file is laid out as one that is written anew.
func TestWriteIndex_KnowsWhatIsWritten(t *testing.T) {
	opts := testOptions(t)
	writeTool(t, opts, "index.json", strings.Replace(seedIndex("b", "old"), `"version":"1.0.0","cap`, `"x":  [1 ,2],"version":"1.0.0","cap`, 1))
	writeTool(t, opts, "b.ts", "1")
	r := openWith(t, opts)
	check := func(what string) {
		t.Helper()
		text := []byte(readTool(t, opts, "index.json"))
		fresh, err := decodeIndex(text, nil)
		if err != nil {
			t.Fatal(err)
		}
		if known, err := r.load(t.Context()); err != nil || describeIndex(known) != describeIndex(fresh) || known != r.decoded {
			t.Errorf("after %s: %v, known\n%s\nread\n%s", what, err, describeIndex(known), describeIndex(fresh))
		}
		if string(fresh.encode()) != string(text) {
			t.Errorf("after %s the layout is another one:\n%s", what, text)
		}
	}
	def := stockDefinition("a")
	def.Permissions = nil
	register(t, r, def, "1")
	check("a registration")
	register(t, r, def, "2")
	check("an update")
	register(t, r, definition("b"), "2")
	check("an update of one in the seed's format")
	register(t, r, netDefinition("a.com"), "1")
	check("another")
	if err := r.Archive(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	check("archiving")
	if err := r.Delete(t.Context(), "a", Provenance{By: ByHuman}); err != nil {
		t.Fatal(err)
	}
	check("a deletion")
}

// An editor may change the file in place, and leave its size and time as they
// were.
func TestRead_SameSizeAndTime(t *testing.T) {
	opts := testOptions(t)
	writeTool(t, opts, "index.json", seedIndex("aa", "bb"))
	r := openWith(t, opts)
	path := filepath.Join(opts.Workspace, "tools", "index.json")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(seedIndex("aa", "cc")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if got := names(list(t, r, "")); !reflect.DeepEqual(got, []string{"aa", "cc"}) {
		t.Errorf("listed %q", got)
	}
}

// An index that could not be read again is not written.
func TestRegister_IndexWouldBeTooLarge(t *testing.T) {
	opts := testOptions(t)
	pad := strings.Replace(seedIndex("a"), `"capabilities"`, `"pad":"`+strings.Repeat("x", maxIndex-500)+`","capabilities"`, 1)
	writeTool(t, opts, "index.json", pad)
	r := openWith(t, opts)
	before := readTool(t, opts, "index.json")
	_, err := r.Register(t.Context(), stockDefinition("b"), "1", Provenance{}, nil)
	if err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("registered: %v", err)
	}
	if readTool(t, opts, "index.json") != before {
		t.Error("the index was changed")
	}
	if l := list(t, openWith(t, opts), ""); l.Total != 1 {
		t.Errorf("%d capabilities", l.Total)
	}
}

// Searches and listings go on while the index changes under them.
func TestList_WhileRegistering(t *testing.T) {
	opts := testOptions(t)
	r := openWith(t, opts)
	register(t, r, definition("first"), "1")
	var readers sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				l, err := r.List(t.Context(), "does first")
				if err != nil || l.Total == 0 || l.Capabilities[0].Name != "first" {
					t.Errorf("%v: %s", err, encode(l))
					return
				}
			}
		})
	}
	for i := range 20 {
		register(t, r, definition(fmt.Sprintf("other_%d", i)), "1")
	}
	close(done)
	readers.Wait()
}
