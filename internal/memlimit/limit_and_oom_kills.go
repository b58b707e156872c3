package memlimit

import (
	"math"
	"runtime/debug"
)

// A LimitSource says what sets a limit.
type LimitSource string

// The sources of a limit.
const (
	Runtime LimitSource = "GOMEMLIMIT" // the environment variable, or debug.SetMemoryLimit
	Cgroup  LimitSource = "cgroup"     // a control group of the process, or one of its parents
	Machine LimitSource = "machine"    // the memory of the machine
)

// A Limit is how much memory the process may use.
type Limit struct {
	Bytes  int64 // 0: unknown, as on systems other than Linux and macOS without GOMEMLIMIT
	Source LimitSource
}

// Get returns the smallest of the Go runtime's limit (GOMEMLIMIT), the limits of the process's
// control group and its parents (versions 1 and 2), and the memory of the machine. It reads a few
// small files, so a frequent caller should keep the result.
func Get() Limit {
	l := systemLimit("/")
	if n := debug.SetMemoryLimit(-1); n < math.MaxInt64 && (l.Bytes == 0 || n < l.Bytes) {
		return Limit{Bytes: n, Source: Runtime}
	}
	return l
}

// systemLimit returns the limit that the operating system sets. root is the directory of its files,
// "/" except in tests.
func systemLimit(root string) Limit {
	l := Limit{Bytes: machineMemory(root), Source: Machine}
	for _, g := range memoryCgroups(root) {
		if n, ok := g.limit(); ok && (l.Bytes == 0 || n < l.Bytes) {
			l = Limit{Bytes: n, Source: Cgroup}
		}
	}
	if l.Bytes == 0 {
		return Limit{}
	}
	return l
}

// OOMKills returns how many processes of the process's own control group the kernel has killed for
// want of memory, and false if the kernel does not count them. A group that is created again, as
// systemd does when it restarts a service, counts from 0.
func OOMKills() (int64, bool) { return oomKillsWithFSRoot("/") }

// oomKillsWithFSRoot implements OOMKills with the files in root.
func oomKillsWithFSRoot(root string) (int64, bool) {
	for _, g := range memoryCgroups(root) {
		if n, ok := g.oomKills(); g.isOwn && ok {
			return n, true
		}
	}
	return 0, false
}
