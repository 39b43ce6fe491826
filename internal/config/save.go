package config

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// save replaces the file in one step: after a crash it is the old or the new
// one. The caller holds the lock.
func save(path string, data []byte) error {
	if len(data) > maxFileBytes {
		return fmt.Errorf("they would have %d bytes; at most %d are read", len(data), maxFileBytes)
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // the link stays
	}
	temp := path + ".tmp"
	if err := os.Remove(temp); err != nil && !os.IsNotExist(err) { // left by a crash
		return err
	}
	if err := writeSynced(temp, data); err != nil {
		os.Remove(temp)
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		os.Remove(temp)
		return err
	}
	return syncFolder(filepath.Dir(path))
}

func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return f.Close()
}

// syncFolder makes a rename last. Windows has no such call.
func syncFolder(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
