package capability

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// mend sets the unreadable index aside and writes what can be rebuilt. The lock
// is held.
func (r *Registry) mend(damage string) (*index, error) {
	ix, how, err := r.rebuild()
	if err != nil {
		return nil, err
	}
	aside, err := r.setAside()
	if err != nil {
		return nil, writeError(err)
	}
	if err := r.writeIndex(ix); err != nil {
		return nil, writeError(err)
	}
	message, hint := damage, "look at the list with `tendril capability list`, and at what else there is with `tendril capability doctor`"
	if aside != "" {
		message += "; it was kept as " + aside
		hint += "; what is missing may still be in the file that was kept"
	}
	r.notify(fmt.Sprintf("%s; the list of capabilities was rebuilt: %s", message, how), hint)
	return ix, nil
}

// setAside keeps a copy of the index under a dated name. Of an index that is
// too large to copy the file itself is renamed.
func (r *Registry) setAside() (string, error) {
	data, err := readFile(r.root, indexPath, maxIndex)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	aside := r.asideName(indexPath)
	if errors.Is(err, errTooLarge) {
		return aside, r.disk.Rename(indexPath, aside)
	}
	if err != nil {
		return "", err
	}
	return aside, replace(r.disk, aside, data)
}

// asideName is a name that is free, for what is kept out of the way.
func (r *Registry) asideName(path string) string {
	base := path + ".unreadable-" + r.opts.Now().UTC().Format("20060102T150405Z")
	name := base
	for n := 2; ; n++ {
		if _, err := r.root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return name
		}
		name = fmt.Sprintf("%s-%d", base, n)
	}
}

// rebuild makes an index of what is left: the entries that are whole, the
// versions that were kept, and, where no version of ours is, the sources.
func (r *Registry) rebuild() (ix *index, how string, err error) {
	data, err := readFile(r.root, indexPath, maxIndex)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errTooLarge) {
		return nil, "", err
	}
	b := builder{r: r, ix: emptyIndex()}
	intact, _ := decodeIndex(data, nil)
	if intact != nil {
		b.fromIntact(intact)
	} else {
		b.fromEntries(salvage(data))
		b.fromVersions(r.versionedNames())
		b.fromSources()
	}
	return b.ix, b.how(), nil
}

// builder collects entries, each name once.
type builder struct {
	r                          *Registry
	ix                         *index
	whole, versions, recovered int
	ours                       bool // something was kept that is not in the seed's format
}

func (b *builder) how() string {
	if b.whole+b.versions+b.recovered == 0 {
		return "nothing to rebuild it from was found"
	}
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{
		{b.whole, "from whole entries"}, {b.versions, "from kept versions"},
		{b.recovered, "from sources in tools/ alone, their descriptions are lost and they count as unproven"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	return strings.Join(parts, ", ")
}

func (b *builder) add(e *entry, count *int) {
	if b.ix.find(e.def.Name) == nil {
		b.ix.entries = append(b.ix.entries, e)
		*count++
	}
}

// fromIntact keeps the readable entries of an index in which single ones are
// bad, and mends those whose name can still be read. A name that is not in it
// was removed by somebody and stays removed.
func (b *builder) fromIntact(ix *index) {
	if _, err := DecodeString(ix.fields.get("version"), "version"); err == nil {
		b.ix.fields = ix.fields
	} else {
		b.ix.fields = ix.fields.set("version", encode(indexVersion))
	}
	for _, e := range ix.entries {
		b.ix.entries = append(b.ix.entries, e)
		b.whole++
	}
	for _, raw := range ix.bad {
		fields, err := decodeObject(raw, nil)
		if err != nil {
			continue
		}
		name, _ := DecodeString(fields.get("name"), "name")
		if validName(name) && !b.fromVersion(name) {
			b.fromSource(name, fields)
		}
	}
}

func (b *builder) fromEntries(entries []*entry) {
	for _, e := range entries {
		if e.hash == "" && b.fromVersion(e.def.Name) {
			continue
		}
		b.add(e, &b.whole)
	}
}

func (b *builder) fromVersions(names []string) {
	for _, name := range names {
		_, deleted := deletion(b.r.root, name)
		switch {
		case deleted:
			b.ours = true
		case b.ix.find(name) == nil && !b.fromVersion(name) && b.remembered(name) != nil:
			b.fromSource(name, nil) // in the seed's format, and ran here
		}
	}
}

// fromVersion takes the newest version of a name that is whole and has passed a
// gate; a person's text that was only kept is not one.
func (b *builder) fromVersion(name string) bool {
	for _, k := range slices.Backward(keptVersions(b.r.root, name)) {
		v, err := readVersion(b.r.root, k.base)
		if err != nil || v.Lenient {
			continue
		}
		b.ours = true
		if v.Gate != nil {
			b.add(activeEntry(nil, v, StatusActive), &b.versions)
			return true
		}
	}
	return false
}

// fromSources takes tools/*.ts in a workspace without versions of ours.
func (b *builder) fromSources() {
	if b.ours || slices.ContainsFunc(b.ix.entries, func(e *entry) bool { return e.hash != "" }) {
		return
	}
	files, _ := readNames(b.r.root, toolsPath) // unreadable: nothing to take
	slices.Sort(files)
	for _, file := range files {
		if name, ok := strings.CutSuffix(file, ".ts"); ok && validName(name) {
			b.fromSource(name, nil)
		}
	}
}

// fromSource makes an entry in the seed's format for a source whose entry is
// lost, with what is left of that.
func (b *builder) fromSource(name string, left object) {
	if _, err := readableCopy(b.r.root, name); err != nil || !b.r.hasCopy(name) {
		return
	}
	def, counted := b.remembered(name), &b.versions
	if def == nil {
		def, counted = &Definition{Capability: fmt.Sprintf("Recovered from tools/%s.ts; its description was lost.", name)}, &b.recovered
	}
	if sentence, _ := DecodeString(left.get("capability"), ""); strings.TrimSpace(sentence) != "" {
		def.Capability = sentence
	}
	today := encode(b.r.opts.Now().UTC().Format("2006-01-02"))
	fields := object{
		{"name", encode(name)}, {"capability", encode(def.Capability)},
		{"triggers", encode(orEmpty(def.Triggers))}, {"suppression", encode(orEmpty(def.Suppression))},
		{"tool_path", encode(name + ".ts")}, {"created", today}, {"created_by", encode(ByModel)},
		{"version", encode(firstNumber.String())},
	}
	if e, err := decodeEntry(encode(fields)); err == nil {
		b.add(e, counted)
	}
}

// remembered is the definition that was kept when a capability in the seed's
// format first ran; nil when it never did.
func (b *builder) remembered(name string) *Definition {
	for _, k := range slices.Backward(keptVersions(b.r.root, name)) {
		if v, err := readVersion(b.r.root, k.base); err == nil && v.Lenient && v.Gate != nil {
			return &v.Definition
		}
	}
	return nil
}

func (r *Registry) hasCopy(name string) bool {
	_, err := r.root.Stat(copyPath(name))
	return err == nil
}

// versionedNames lists the names that have kept versions.
func (r *Registry) versionedNames() []string {
	found, _ := readNames(r.root, versionsPath) // unreadable: none
	var names []string
	for _, name := range found {
		if validName(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// salvage finds the whole entries in what is left of an index. It reads the
// bytes once: an entry is an object at the first or second level of braces.
func salvage(data []byte) []*entry {
	var entries []*entry
	var open []int
	inString, escaped := false, false
	for i, c := range data {
		switch {
		case escaped:
			escaped = false
		case inString:
			escaped = c == '\\'
			inString = c != '"' && c != '\n'
		case c == '"':
			inString = true
		case c == '{':
			open = append(open, i)
		case c == '}' && len(open) > 0:
			start := open[len(open)-1]
			open = open[:len(open)-1]
			if len(open) > 1 {
				continue
			}
			if e, err := decodeEntry(json.RawMessage(data[start : i+1])); err == nil {
				entries = append(entries, e)
			}
		}
	}
	return entries
}
