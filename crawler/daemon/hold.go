package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// The modes of the files and directories that decorum creates: only the daemon's user
// can read them. Existing ones keep their modes.
const (
	privateDir  fs.FileMode = 0o700
	privateFile fs.FileMode = 0o600
)

// A hold keeps other processes from a directory until it is closed.
type hold struct {
	file *os.File // the lock file, which names the process
	dir  *os.File // the directory itself; nil: the process already holds it
}

// Close releases the directory. It unlocks explicitly: closing the files releases a
// lock only when no process has them open, and a process being started has copies of
// them for a moment.
func (h *hold) Close() error {
	err := errors.Join(unlock(h.file), h.file.Close())
	if h.dir != nil {
		_ = unlock(h.dir) // fails where directories cannot be locked; the file is closed in any case
		err = errors.Join(err, h.dir.Close())
	}
	return err
}

// holdDirectory keeps other processes from a directory. It locks a file in it, and the
// directory itself, since the file can be removed. what and flag name the directory in
// errors. held is a directory that this process already holds: if it is the same one,
// holdDirectory locks only the file.
func holdDirectory(root *os.Root, name, what, flag, held string) (*hold, error) {
	f, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE, privateFile)
	if err != nil {
		return nil, usage("cannot use %s: %w", what, err)
	}
	h := &hold{file: f}
	switch ours, err := tryLock(f); {
	case err != nil:
		return nil, errors.Join(fmt.Errorf("cannot lock %s: %w", what, err), f.Close())
	case !ours:
		return nil, errors.Join(newDirectoryInUseError(holder(f), root, flag), f.Close())
	}
	ours, err := h.lockDir(root, held)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot lock %s: %w", what, err), h.Close())
	}
	if !ours {
		return nil, errors.Join(newDirectoryInUseError("another process", root, flag), h.Close())
	}
	noteHolder(f)
	return h, nil
}

func newDirectoryInUseError(who string, root *os.Root, flag string) error {
	return fmt.Errorf("in use by %s: %s; stop it first, or name another directory with %s", who, root.Name(), flag)
}

// lockDir locks the directory itself, unless this process already holds it. It returns
// false if another process has the lock. Some file systems, NFS for example, cannot
// lock a directory: there only the file is locked.
func (h *hold) lockDir(root *os.Root, held string) (bool, error) {
	dir, err := root.Open(".")
	if err != nil {
		return false, err
	}
	if held != "" {
		if same, err := isDirectory(dir, held); same || err != nil {
			return err == nil, errors.Join(err, dir.Close())
		}
	}
	h.dir = dir
	ours, err := tryLock(dir)
	return ours || err != nil, nil
}

// isDirectory reports whether dir is the directory called name.
func isDirectory(dir *os.File, name string) (bool, error) {
	here, err := dir.Stat()
	there, err2 := os.Stat(name)
	if err := errors.Join(err, err2); err != nil {
		return false, err
	}
	return os.SameFile(here, there), nil
}

// isInUse reports whether a process crawls from the directory, as far as its locks show.
func (d stateDir) isInUse() bool {
	return isLocked(d.path(lockFile), os.O_RDWR) || isLocked(string(d), os.O_RDONLY)
}

// isLocked reports whether another process, or another part of this one, has locked a
// file or directory.
func isLocked(name string, flag int) bool {
	f, err := os.OpenFile(name, flag, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	free, err := tryLock(f)
	if free {
		_ = unlock(f) // the file is closed in any case
	}
	return err == nil && !free
}

// isIdle reports whether processes have worked in the directory, but none does now. It
// returns false where locks cannot be tested.
func (d stateDir) isIdle() bool {
	info, err := os.Stat(d.path(lockFile))
	return err == nil && info.Mode().IsRegular() && hasLocks && !d.isInUse()
}

// noteHolder writes into a lock file which process holds it, for messages only: where
// the write fails, on a full disk for example, messages name no process.
func noteHolder(f *os.File) {
	if f.Truncate(0) == nil {
		_, _ = fmt.Fprintf(f, "%d\n", os.Getpid())
	}
}

// holder names the process that holds a lock file, if the file does.
func holder(f *os.File) string {
	text := make([]byte, 20)
	n, _ := f.ReadAt(text, 0)
	if pid, err := strconv.Atoi(strings.TrimSpace(string(text[:n]))); err == nil {
		return fmt.Sprintf("process %d", pid)
	}
	return "another process"
}
