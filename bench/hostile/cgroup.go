package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// errNoCgroup is the error on a machine where the program cannot create a memory cgroup.
var errNoCgroup = errors.New("cannot create a memory cgroup on this machine")

// A cgroup limits the memory of the processes that enter it.
type cgroup struct {
	dir string
	cgroupFileNames
}

// cgroupFileNames are the names of a memory cgroup's files.
type cgroupFileNames struct{ limit, oomEvents, peak string }

var (
	cgroupV1 = cgroupFileNames{"memory.limit_in_bytes", "memory.oom_control", "memory.max_usage_in_bytes"}
	cgroupV2 = cgroupFileNames{"memory.max", "memory.events", "memory.peak"}
)

// newCgroup creates a cgroup, of version 1 or 2, whose processes may use limit bytes together.
func newCgroup(limit int64) (*cgroup, error) {
	const root = "/sys/fs/cgroup"
	name := fmt.Sprintf("decorum-hostile-%d", os.Getpid())
	g := &cgroup{filepath.Join(root, "memory", name), cgroupV1}
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err == nil {
		g = &cgroup{filepath.Join(root, name), cgroupV2}
	}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoCgroup, err)
	}
	if err := os.WriteFile(filepath.Join(g.dir, g.limit), strconv.AppendInt(nil, limit, 10), 0); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", errNoCgroup, err), g.remove())
	}
	return g, nil
}

// enterCgroup moves this process into the cgroup at dir.
func enterCgroup(dir string) error {
	return os.WriteFile(filepath.Join(dir, "cgroup.procs"), strconv.AppendInt(nil, int64(os.Getpid()), 10), 0)
}

// oomKills returns how many processes of the cgroup the kernel has killed because of the limit.
func (g *cgroup) oomKills() int {
	text, _ := os.ReadFile(filepath.Join(g.dir, g.oomEvents)) // without the file, the kernel does not count
	for line := range strings.Lines(string(text)) {
		if count, ok := strings.CutPrefix(line, "oom_kill "); ok {
			n, _ := strconv.Atoi(strings.TrimSpace(count))
			return n
		}
	}
	return 0
}

// peakBytes returns the peak memory of the cgroup.
func (g *cgroup) peakBytes() int64 {
	text, _ := os.ReadFile(filepath.Join(g.dir, g.cgroupFileNames.peak))
	n, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n
}

// remove removes the cgroup, whose processes must have ended.
func (g *cgroup) remove() error { return os.Remove(g.dir) }
