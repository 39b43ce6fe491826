package jail

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// base is where the new root is built. It hides what is there, in the new mount
// namespace alone.
const base = "/tmp"

// devices are those that every program expects.
var devices = []string{"null", "zero", "full", "random", "urandom"}

// buildRoot makes the mounts of spec the whole file system.
//
// The sources are opened before anything is hidden, without following a link
// anywhere in their path, and get their attributes before they are attached.
func buildRoot(spec *Spec) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	trees, err := openTrees(spec.Mounts)
	if err != nil {
		return err
	}
	if err := unix.Mount("tendril", base, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=1m,nr_inodes=4096"); err != nil {
		return err
	}
	if err := os.Mkdir(base+closedDir, 0); err != nil {
		return err
	}
	if err := os.WriteFile(base+closedFile, nil, 0); err != nil {
		return err
	}
	for _, t := range trees {
		if err := t.attach(); err != nil {
			return fmt.Errorf("%s: %w", t.mount.Path, err)
		}
	}
	if err := special(); err != nil {
		return err
	}
	if err := makePoint(base+spec.Dir, true); err != nil { // nothing may have been granted of it
		return err
	}
	if err := unix.Chdir(base); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return err
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return err
	}
	return unix.MountSetattr(unix.AT_FDCWD, "/", 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}

// What closed places show instead.
const (
	closedDir  = "/.closed"
	closedFile = "/.closed-file"
)

// tree is a mount on its way.
type tree struct {
	mount Mount
	fd    int  // -1 for what has no source
	dir   bool // it is a folder
}

func openTrees(mounts []Mount) ([]tree, error) {
	device := func(name string) Mount { return Mount{Path: "/dev/" + name, Kind: "device"} }
	all := mounts
	for _, name := range devices {
		all = append(all[:len(all):len(all)], device(name))
	}
	var trees []tree
	for _, m := range all {
		t, err := openTree(m)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Path, err)
		}
		trees = append(trees, t)
	}
	return trees, nil
}

func openTree(m Mount) (tree, error) {
	if m.Kind == Tmp || m.Kind == Closed {
		return tree{mount: m, fd: -1, dir: m.Kind == Tmp}, nil
	}
	source := m.Source
	if source == "" {
		source = m.Path
	}
	place, err := unix.Openat2(unix.AT_FDCWD, source, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return tree{}, err
	}
	defer unix.Close(place)
	var stat unix.Stat_t
	if err := unix.Fstat(place, &stat); err != nil {
		return tree{}, err
	}
	fd, err := unix.OpenTree(place, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return tree{}, err
	}
	attr := unix.MountAttr{Attr_set: attributes(m.Kind)}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		return tree{}, err
	}
	return tree{mount: m, fd: fd, dir: stat.Mode&unix.S_IFMT == unix.S_IFDIR}, nil
}

func attributes(k Kind) uint64 {
	switch k {
	case Program:
		return unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	case Read:
		return unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC
	case Write:
		return unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC
	}
	return unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC // a device
}

func (t tree) attach() error {
	target := base + t.mount.Path
	if t.mount.Kind == Closed {
		return closePlace(target)
	}
	if err := makePoint(target, t.dir); err != nil {
		return err
	}
	if t.mount.Kind == Tmp {
		options := fmt.Sprintf("mode=700,uid=%d,gid=%[1]d,size=%d,nr_inodes=%d", inside, t.mount.Bytes, t.mount.Files)
		return unix.Mount("tendril", target, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, options)
	}
	defer unix.Close(t.fd)
	return unix.MoveMount(t.fd, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// makePoint makes what a mount lies on, unless something is there.
func makePoint(target string, dir bool) error {
	if _, err := os.Lstat(target); err == nil {
		return nil
	}
	parent := target
	if !dir {
		parent = filepath.Dir(target)
	}
	if err := os.MkdirAll(parent, 0o755); err != nil || dir {
		return err
	}
	return os.WriteFile(target, nil, 0o400)
}

// closePlace hides what is at target, if anything is. A link there leads to a
// place that has rules of its own.
func closePlace(target string) error {
	info, err := os.Lstat(target)
	switch {
	case errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, os.ErrPermission):
		return nil // nobody inside can get there either
	case err != nil:
		return err
	case info.Mode()&os.ModeSymlink != 0:
		return nil
	}
	source := base + closedFile
	if info.IsDir() {
		source = base + closedDir
	}
	fd, err := unix.OpenTree(unix.AT_FDCWD, source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: attributes(Read)}); err != nil {
		return err
	}
	return unix.MoveMount(fd, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// special makes what is no part of any file system.
func special() error {
	if err := os.MkdirAll(base+"/proc", 0o755); err != nil {
		return err
	}
	err := unix.Mount("proc", base+"/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "subset=pid,hidepid=invisible")
	if err != nil {
		return fmt.Errorf("mount proc: %w", err)
	}
	for link, to := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"} {
		if err := os.Symlink(to, base+"/dev/"+link); err != nil {
			return err
		}
	}
	return nil
}
