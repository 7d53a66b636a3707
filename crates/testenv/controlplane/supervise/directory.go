package supervise

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// marker is a file in every directory of an instance. Without it nothing is deleted
// there: the directory may be somebody else's.
const marker = "windlass-testenv.instance"

// claim creates the directory of an instance, or fails if an existing one is not ours.
func claim(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !os.IsExist(err) {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if !isPrivate(dir) || (hasForeignFile(entries) && !isOurs(dir)) {
		return fmt.Errorf("%s is not a directory of windlass: it is a link, not private, or has no file %s", dir, marker)
	}
	return os.WriteFile(filepath.Join(dir, marker), nil, 0o600)
}

// hasForeignFile reports whether there is more than the log, which is opened before this program
// starts and may outlive a directory that another one has just deleted.
func hasForeignFile(entries []os.DirEntry) bool {
	return len(entries) > 1 || (len(entries) == 1 && entries[0].Name() != "supervisor.log")
}

// isOurs reports whether dir is a private directory with our marker.
func isOurs(dir string) bool {
	info, err := os.Lstat(filepath.Join(dir, marker))
	return err == nil && info.Mode().IsRegular() && isPrivate(dir)
}

// isPrivate reports whether dir is a directory, not a link, that only this user has access to.
func isPrivate(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o077 != 0 {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// removeDirectory deletes the directory of an instance. The marker goes last, so that a
// half-deleted directory is still recognised.
func removeDirectory(dir string) error {
	if err := clear(dir); err != nil {
		return err
	}
	for _, name := range []string{"supervisor.log", marker} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return os.Remove(dir)
}
