package datadir

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/decorum-crawler/decorum/internal/usage"
)

// A DirectoryLock keeps other processes from a directory until it is closed.
type DirectoryLock struct {
	lockFile *os.File // the lock file, which names the process
	dir      *os.File // the directory itself; nil: the process already holds it
	stateDir StateDir // of a lock that StateDir.Lock has returned
	// staleSocket is a socket outside of the directory that a killed process may have left.
	staleSocket string
	socket      string // the path of the socket that ListenSocket has made; empty: none
}

// Close releases the directory, and removes its socket before; one that stays is replaced by the
// next process. It unlocks explicitly: closing the files releases a
// lock only when no process has them open, and a process being started has copies of
// them for a moment.
func (h *DirectoryLock) Close() error {
	_ = h.removeSocket()
	err := errors.Join(unlockFile(h.lockFile), h.lockFile.Close())
	if h.dir != nil {
		_ = unlockFile(h.dir) // fails where directories cannot be locked; the file is closed in any case
		err = errors.Join(err, h.dir.Close())
	}
	return err
}

// LockDirectory keeps other processes from a directory. It locks a file in it, and the
// directory itself, since the file can be removed. what and flag name the directory in
// errors. held is a directory that this process already holds: if it is the same one,
// LockDirectory locks only the file.
func LockDirectory(root *os.Root, name, dirDescription, flag, lockedDir string) (*DirectoryLock, error) {
	f, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE, PrivateFileMode)
	if err != nil {
		return nil, usage.Errorf("cannot use %s: %w", dirDescription, err)
	}
	h := &DirectoryLock{lockFile: f}
	switch acquired, err := tryLockFile(f); {
	case err != nil:
		return nil, errors.Join(fmt.Errorf("cannot lock %s: %w", dirDescription, err), f.Close())
	case !acquired:
		holder, _ := readLockFile(f)
		return nil, errors.Join(newDirectoryInUseError(holder, root, flag), f.Close())
	}
	acquired, err := h.tryLockDir(root, lockedDir)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot lock %s: %w", dirDescription, err), h.Close())
	}
	if !acquired {
		return nil, errors.Join(newDirectoryInUseError("another process", root, flag), h.Close())
	}
	_, h.staleSocket = readLockFile(f)
	h.writeHolder("")
	return h, nil
}

func newDirectoryInUseError(holder string, root *os.Root, flag string) error {
	return fmt.Errorf("in use by %s: %s; stop it first, or name another directory with %s", holder, root.Name(), flag)
}

// tryLockDir locks the directory itself, unless this process already holds it. It returns
// false if another process has the lock. Some file systems, NFS for example, cannot
// lock a directory: there only the file is locked.
func (h *DirectoryLock) tryLockDir(root *os.Root, lockedDir string) (bool, error) {
	dir, err := root.Open(".")
	if err != nil {
		return false, err
	}
	if lockedDir != "" {
		if same, err := isSameDirectory(dir, lockedDir); same || err != nil {
			return err == nil, errors.Join(err, dir.Close())
		}
	}
	h.dir = dir
	acquired, err := tryLockFile(dir)
	return acquired || err != nil, nil
}

// isSameDirectory reports whether dir is the directory called name.
func isSameDirectory(dir *os.File, name string) (bool, error) {
	dirInfo, err := dir.Stat()
	namedInfo, err2 := os.Stat(name)
	if err := errors.Join(err, err2); err != nil {
		return false, err
	}
	return os.SameFile(dirInfo, namedInfo), nil
}

// IsInUse reports whether a process crawls from the directory, as far as its locks show.
func (d StateDir) IsInUse() bool {
	return isLocked(d.Path(LockFile), os.O_RDWR) || isLocked(string(d), os.O_RDONLY)
}

// isLocked reports whether another process, or another part of this one, has locked a
// file or directory.
func isLocked(name string, flag int) bool {
	f, err := os.OpenFile(name, flag, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	acquired, err := tryLockFile(f)
	if acquired {
		_ = unlockFile(f) // the file is closed in any case
	}
	return err == nil && !acquired
}

// WasUsedButIsIdle reports whether processes have worked in the directory, but none does now. It
// returns false where locks cannot be tested.
func (d StateDir) WasUsedButIsIdle() bool {
	info, err := os.Stat(d.Path(LockFile))
	return err == nil && info.Mode().IsRegular() && hasFileLocks && !d.IsInUse()
}

// writeHolder writes into the lock file which process holds it and, if socket is not empty, the
// path of the process's socket, a line each. Where the write fails, on a full disk for
// example, messages name no process, and no other process finds the socket.
func (h *DirectoryLock) writeHolder(socket string) {
	text := fmt.Sprintf("%d\n", os.Getpid())
	if socket != "" {
		text += socket + "\n"
	}
	if h.lockFile.Truncate(0) == nil {
		_, _ = h.lockFile.WriteAt([]byte(text), 0)
	}
}

// readLockFile names the process that holds a lock file, if the file does, and the path of
// its socket, empty if the file names none.
func readLockFile(f *os.File) (holder, socket string) {
	text, _ := io.ReadAll(io.NewSectionReader(f, 0, maxLockFileBytes))
	pidText, rest, _ := strings.Cut(string(text), "\n")
	socket, _, _ = strings.Cut(rest, "\n")
	if pid, err := strconv.Atoi(strings.TrimSpace(pidText)); err == nil {
		return fmt.Sprintf("process %d", pid), socket
	}
	return "another process", socket
}

// maxLockFileBytes is how much of a lock file is read: a number and a path.
const maxLockFileBytes = 5000
