package capability

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// maxKept is the size up to which a source is read back; old workspaces may
// hold larger ones than the gate admits.
const maxKept = 4 << 20

// version is an immutable version of a capability: its source and what is known
// of it. The JSON form is the file beside the source.
type version struct {
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	Hash       string     `json:"sha256"`
	CreatedBy  string     `json:"created_by"`
	Created    time.Time  `json:"created"`
	Person     string     `json:"person,omitempty"`
	Model      string     `json:"model,omitempty"`
	Session    string     `json:"session,omitempty"`
	Parent     string     `json:"parent,omitempty"` // hash of the version that was active before
	Note       string     `json:"note,omitempty"`
	Lenient    bool       `json:"lenient,omitempty"` // from a workspace that is older than the gate
	Definition Definition `json:"definition"`
	// Lock is the lock of its remote dependencies, a JSON object in the form that
	// is hashed; nil for none.
	Lock   json.RawMessage `json:"lock,omitempty"`
	Gate   *Evidence       `json:"gate,omitempty"` // as seen where it was made; it proves nothing here
	Source []byte          `json:"-"`
	unkept bool            // its files are missing; it is what the entry and the readable copy say
}

// ref is the name of a version's files, and how it is referred to.
func (v *version) ref() versionRef { return versionRef{v.Version, v.Hash} }

func versionBase(name string, ref versionRef) string {
	return path.Join(versionsPath, name, ref.Version+"-"+short(ref.Hash))
}

// keptVersion is a version as its file name tells it.
type keptVersion struct {
	number number
	base   string // path without the ending
	hash   string // the first 12 digits
}

// keptVersions lists the versions of a capability, oldest first.
func keptVersions(root *os.Root, name string) []keptVersion {
	kept, _ := records(root, name)
	return kept
}

// records lists what is kept of a capability by the names of its files: its
// versions, oldest first, and the number of its last deletion, zero without one.
func records(root *os.Root, name string) (kept []keptVersion, deleted number) {
	names, _ := readNames(root, path.Join(versionsPath, name)) // unreadable: none
	for _, file := range names {
		if n, ok := parseTombstone(file); ok && n.compare(deleted) > 0 {
			deleted = n
		}
		base, ok := strings.CutSuffix(file, ".ts")
		if !ok {
			continue
		}
		text, hash, ok := strings.Cut(base, "-")
		n, valid := parseNumber(text)
		if ok && valid && len(hash) == 12 {
			kept = append(kept, keptVersion{n, path.Join(versionsPath, name, base), hash})
		}
	}
	slices.SortFunc(kept, func(a, b keptVersion) int {
		if c := a.number.compare(b.number); c != 0 {
			return c
		}
		return strings.Compare(a.hash, b.hash)
	})
	return kept, deleted
}

// nextNumber is the number for a new version of a capability: a minor more than
// the highest ever seen.
func nextNumber(root *os.Root, name string, e *entry) number {
	var highest number
	consider := func(n number) {
		if n.compare(highest) > 0 {
			highest = n
		}
	}
	kept, deleted := records(root, name)
	consider(deleted)
	for _, k := range kept {
		consider(k.number)
	}
	if e != nil {
		n, _ := parseNumber(e.version)
		consider(n)
	}
	return highest.next()
}

// errHash means that the bytes of a version are not those that its name
// promises.
var errHash = errors.New("its bytes do not match its hash: they were changed after it was kept; restore the file, or register the capability again")

// readVersion reads the version at base and checks that its bytes are those of
// its hash.
func readVersion(root *os.Root, base string) (*version, error) {
	source, err := readFile(root, base+".ts", maxKept)
	if err != nil {
		return nil, err
	}
	data, err := readFile(root, base+".json", maxKept)
	if err != nil {
		return nil, err
	}
	v, err := decodeVersion(data)
	if err != nil {
		return nil, fmt.Errorf("%s.json cannot be read: %w", base, err)
	}
	v.Source = source
	named := path.Base(base) == v.Version+"-"+short(v.Hash) && path.Base(path.Dir(base)) == v.Name
	if !named || v.Name != v.Definition.Name || v.Hash != admissionHash(&v.Definition, source, v.Lock) {
		return nil, fmt.Errorf("%s: %w", base, errHash)
	}
	return v, nil
}

func decodeVersion(data []byte) (*version, error) {
	fields, err := decodeObject(data, nil)
	if err != nil {
		return nil, err
	}
	var v version
	definition := fields.get("definition")
	if err := json.Unmarshal(fields.set("definition", nil).encode(), &v); err != nil {
		return nil, err
	}
	if v.Definition, err = parseDefinition(definition, "definition"); err != nil {
		return nil, err
	}
	v.Lock = canonicalJSON(v.Lock)
	if _, ok := parseNumber(v.Version); !ok || !validName(v.Name) || !validHash(v.Hash) {
		return nil, errors.New("its name, version or hash is none")
	}
	return &v, nil
}

// writeVersion keeps the files of v.
func writeVersion(d disk, v *version) error {
	base := versionBase(v.Name, v.ref())
	if err := d.MakeFolder(path.Dir(base)); err != nil {
		return err
	}
	if err := replace(d, base+".ts", v.Source); err != nil {
		return err
	}
	return replace(d, base+".json", indent(encode(v)))
}

// keptLock is the lock of the version that an entry names, as far as its file
// tells; nil for none.
func keptLock(root *os.Root, e *entry) json.RawMessage {
	data, err := readFile(root, versionBase(e.def.Name, versionRef{e.version, e.hash})+".json", maxKept)
	if err != nil {
		return nil
	}
	v, err := decodeVersion(data)
	if err != nil {
		return nil
	}
	return v.Lock
}

// readableCopy reads tools/<name>.ts; nil when there is none.
func readableCopy(root *os.Root, name string) ([]byte, error) {
	data, err := readFile(root, copyPath(name), maxKept)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

func copyPath(name string) string { return path.Join(toolsPath, name+".ts") }
