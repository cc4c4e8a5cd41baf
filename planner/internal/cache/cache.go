// Package cache is the place of measurements in the user's cache folder: machines that jobs measured, and decision
// tables for hosts of a kind.
package cache

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"

	"github.com/tierflow/tierflow/levels/files"
)

// most is how many files of a kind are kept. Writing one more removes the oldest.
const most = 64

// Kinds of files.
const (
	Machines = "machines"
	Tables   = "tables"
)

// Folder returns the folder of files of a kind. Without a home it is an error.
func Folder(kind string) (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(base, "tierflow", kind), nil
}

// Write writes a file so that others see all of it or nothing, and only this user reads a new one.
// In a [Folder], which it makes, the oldest files go if there are too many.
func Write(name string, data []byte) error {
	folder := filepath.Dir(name)
	for _, kind := range []string{Machines, Tables} {
		if own, err := Folder(kind); err == nil && folder == own {
			if err = os.MkdirAll(folder, 0o700); err != nil {
				return err
			}
			defer dropOldest(folder)
		}
	}
	return files.Output(name, data, 0o600)
}

// dropOldest removes the oldest files of a folder. Another job may do the same: a file already gone
// is no error.
func dropOldest(folder string) {
	names, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(names) <= most {
		return
	}
	changed := func(name string) int64 {
		info, err := os.Stat(name)
		if err != nil {
			return 0
		}
		return info.ModTime().UnixNano()
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(changed(a), changed(b)) })
	for _, name := range names[:len(names)-most] {
		_ = os.Remove(name)
	}
}
