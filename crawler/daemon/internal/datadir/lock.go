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

// A DirectoryLock keeps other processes out of a directory until it is closed. It is not safe for
// concurrent use.
type DirectoryLock struct {
	lockFile *os.File // names the process that holds the lock
	dir      *os.File // the locked directory; nil: another lock of this process holds it
	stateDir StateDir // set by StateDir.Lock; empty for other locks
	// staleSocket is a socket outside of the directory that a killed process may have left.
	staleSocket string
	socket      string // the path of the socket that ListenSocket has created; empty: none
	url         string // of RecordDaemonURL
}

// Close removes the socket and unlocks the directory. A socket that cannot be removed is replaced by the
// next process. Close unlocks explicitly, because closing a file releases its lock only when no process
// has the file open, and a process that is being started has copies of open files for a moment.
func (h *DirectoryLock) Close() error {
	_ = h.removeSocket()
	err := errors.Join(unlockFile(h.lockFile), h.lockFile.Close())
	if h.dir != nil {
		_ = unlockFile(h.dir) // fails where directories cannot be locked; the file is closed in any case
		err = errors.Join(err, h.dir.Close())
	}
	return err
}

// LockDirectory locks the directory root for this process. It locks the file called name in the directory,
// which it creates if needed, and the directory itself, because the file can be removed. Errors describe
// the directory by dirDescription and flag. lockedDir is a directory that this process has locked already,
// or empty: if it is the same directory, LockDirectory locks only the file.
func LockDirectory(root *os.Root, name, dirDescription, flag, lockedDir string) (*DirectoryLock, error) {
	f, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE, PrivateFileMode)
	if err != nil {
		return nil, usage.Errorf("cannot use %s: %w", dirDescription, err)
	}
	// Lock the file, then the directory. The file names the process that has it.
	h := &DirectoryLock{lockFile: f}
	switch acquired, err := tryLockFile(f); {
	case err != nil:
		return nil, errors.Join(fmt.Errorf("cannot lock %s: %w", dirDescription, err), f.Close())
	case !acquired:
		return nil, errors.Join(newDirectoryInUseError(readLockFile(f).holder, root, flag), f.Close())
	}
	acquired, err := h.tryLockDir(root, lockedDir)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot lock %s: %w", dirDescription, err), h.Close())
	}
	if !acquired {
		return nil, errors.Join(newDirectoryInUseError("another process", root, flag), h.Close())
	}
	// The previous holder may have removed the file, or the directory, after it was opened here.
	if !isFileIn(root, name, f) {
		return nil, errors.Join(newDirectoryInUseError("another process, which has just ended", root, flag), h.Close())
	}
	// Remember the socket of the previous holder before replacing the text of the file.
	h.staleSocket = readLockFile(f).socket
	h.writeHolder("")
	return h, nil
}

func newDirectoryInUseError(holder string, root *os.Root, flag string) error {
	return fmt.Errorf("in use by %s: %s; stop it first, or name another directory with %s", holder, root.Name(), flag)
}

// tryLockDir locks the directory itself, unless it is lockedDir, which this process has locked already. It
// returns false if another process has the lock. It returns true on file systems that cannot lock a
// directory, such as NFS: there, only the file is locked.
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

// isFileIn reports whether root has f, an open file, under name.
func isFileIn(root *os.Root, name string, f *os.File) bool {
	opened, err := f.Stat()
	named, err2 := root.Stat(name)
	return err == nil && err2 == nil && os.SameFile(opened, named)
}

// isSameDirectory reports whether dir is the directory at path name.
func isSameDirectory(dir *os.File, name string) (bool, error) {
	dirInfo, err := dir.Stat()
	namedInfo, err2 := os.Stat(name)
	if err := errors.Join(err, err2); err != nil {
		return false, err
	}
	return os.SameFile(dirInfo, namedInfo), nil
}

// IsInUse reports whether a process has locked the directory. It returns false where locks cannot be
// tested.
func (d StateDir) IsInUse() bool {
	return d.isLockFileLocked() || isLocked(string(d), os.O_RDONLY)
}

// isLockFileLocked reports whether a process of a user who may read the lock file has locked it. IsInUse is
// also true if a process has locked only the directory, which any user who may read the directory can do.
func (d StateDir) isLockFileLocked() bool { return isLocked(d.Path(LockFile), os.O_RDWR) }

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
		_ = unlockFile(f) // if this fails, the Close above unlocks it
	}
	return err == nil && !acquired
}

// WasUsedButIsIdle reports whether a process has used the directory earlier, and none uses it now. It
// returns false where locks cannot be tested.
func (d StateDir) WasUsedButIsIdle() bool {
	info, err := os.Stat(d.Path(LockFile))
	return err == nil && info.Mode().IsRegular() && hasFileLocks && !d.IsInUse()
}

// RecordDaemonURL records the URL of the API of the daemon that holds the lock, for commands that cannot
// use its socket.
func (h *DirectoryLock) RecordDaemonURL(url string) {
	socket := h.socket
	if socket == h.stateDir.Path(SocketFile) {
		socket = ""
	}
	h.url = url
	h.writeHolder(socket)
}

// DaemonURL returns the URL of the API of the daemon that runs in the directory, or "" if it is unknown.
func (d StateDir) DaemonURL() string {
	f, err := os.Open(d.Path(LockFile))
	if err != nil {
		return ""
	}
	defer f.Close()
	if !d.isLockFileLocked() { // the daemon was killed, and another user may listen at its address since
		return ""
	}
	return readLockFile(f).url
}

// writeHolder writes into the lock file the ID of this process, the path of its socket if that is outside
// of the directory, and the URL of its API, one per line. It ignores errors. After one, on a full disk for
// example, messages do not name the process, and other processes find neither the socket nor the URL.
func (h *DirectoryLock) writeHolder(socket string) {
	text := strings.TrimRight(fmt.Sprintf("%d\n%s\n%s", os.Getpid(), socket, h.url), "\n") + "\n"
	if h.lockFile.Truncate(0) == nil {
		_, _ = h.lockFile.WriteAt([]byte(text), 0)
	}
}

// A lockFileText is what a lock file says about the process that holds it. Empty fields are unknown.
type lockFileText struct {
	holder string // describes the process
	socket string // the path of its socket, if that is outside of the directory
	url    string // of its API
}

// readLockFile returns the contents of a lock file.
func readLockFile(f *os.File) lockFileText {
	text, _ := io.ReadAll(io.NewSectionReader(f, 0, maxLockFileBytes))
	lines := append(strings.Split(string(text), "\n"), "", "")
	t := lockFileText{holder: "another process", socket: lines[1], url: lines[2]}
	if pid, err := strconv.Atoi(strings.TrimSpace(lines[0])); err == nil {
		t.holder = fmt.Sprintf("process %d", pid)
	}
	return t
}

// maxLockFileBytes limits how much of a lock file is read. It is enough for a number, a path and a URL.
const maxLockFileBytes = 5000
