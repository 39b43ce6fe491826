// Package jail is the operating system layer of the sandbox: it starts a
// program that sees, of the whole machine, what it was given and nothing else.
//
// On Linux our own binary is started once more, in new user, mount, pid,
// network, ipc, uts and cgroup namespaces. It builds a root of bind mounts,
// changes into it, gives up every capability, installs a seccomp filter, sets
// limits and becomes the program. It does all of it or fails. On other systems
// there is no such layer, and [Supported] says so.
package jail

// Spec is what the program sees and may use. All paths are absolute and clean;
// those of mounts hold no symbolic links, and mean the same inside as outside.
type Spec struct {
	Path string   `json:"path"` // of the program; it must be among the mounts
	Args []string `json:"args"` // with the program's own name first
	Env  []string `json:"env"`
	Dir  string   `json:"dir"` // the working folder

	// Mounts are made in order; a later one may lie inside of an earlier one.
	Mounts []Mount `json:"mounts"`
	// Proxy opens a listener on [ProxyAddress] inside, which [Process.Listener]
	// hands out. Without it there is no network at all, not even loopback.
	Proxy bool `json:"proxy"`

	Limits Limits `json:"limits"`

	// SwitchUser is set by [Process.Enter] for a [User] that is not our own.
	SwitchUser bool `json:"switch_user,omitempty"`
}

// User is whom the program runs as, as the outside knows it. Inside it is always
// user and group 1000.
type User struct{ UID, GID int }

// ProxyAddress is where the program finds the proxy.
const ProxyAddress = "127.0.0.1:3128"

// Mount is one place that the program sees.
type Mount struct {
	Path string `json:"path"`
	Kind Kind   `json:"kind"`
	// Source is another place outside that is shown at Path; empty means Path.
	Source string `json:"source,omitempty"`
	// Bytes and Files bound a Tmp.
	Bytes int64 `json:"bytes,omitempty"`
	Files int64 `json:"files,omitempty"`
}

// Kind says what a mount is. Only the program and its libraries can be executed;
// nothing has devices or takes set-user-ID bits into account.
type Kind string

// The kinds of mounts.
const (
	Program Kind = "program" // a file or folder, read-only, that may be executed
	Read    Kind = "read"    // a file or folder, read-only
	Write   Kind = "write"   // a file or folder that may be changed
	Tmp     Kind = "tmp"     // an empty folder in memory
	Closed  Kind = "closed"  // something that is there cannot be seen; left out where nothing is
)

// Limits are those that the kernel keeps. A zero means none.
type Limits struct {
	FileBytes   int64 `json:"file_bytes"` // of one file
	Descriptors int64 `json:"descriptors"`
	Threads     int64 `json:"threads"` // processes and threads together
	CPUSeconds  int64 `json:"cpu_seconds"`
}
