package capability

import (
	"errors"
	"io/fs"
)

// What a registry that is kept in git needs, beside index.json. Files that are
// there already are a person's and stay.
const (
	attributesPath = "tools/.gitattributes"
	ignorePath     = "tools/.gitignore"

	attributes = `# Tendril compares these files byte for byte with what was checked: git must not change their line ends.
* -text
.versions/** linguist-generated
`
	ignored = `# What Tendril needs while it writes, and what it has set aside.
/.versions/.lock
/.versions/.journal
/.versions/.new
/index.json.unreadable-*
`
)

// prepareForGit writes the files that make tools/ fit to be committed, where
// they are not there. The lock is held.
func (r *Registry) prepareForGit() error {
	return errors.Join(r.writeIfMissing(attributesPath, attributes), r.writeIfMissing(ignorePath, ignored))
}

func (r *Registry) writeIfMissing(name, text string) error {
	if _, err := r.root.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return replace(r.disk, name, []byte(text))
}
