package memlimit

import (
	"bufio"
	"bytes"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// minUnlimited is the smallest value that means no limit: version 1 writes the largest multiple of
// a page that fits into an int64.
const minUnlimited = 1 << 60

// A memoryCgroup is a control group that limits the memory of the process.
type memoryCgroup struct {
	dir   string
	v2    bool // version 2, not 1
	isOwn bool // the group contains the process itself, not only a group below it
}

// memoryCgroups returns the control groups that limit the process's memory, its own first. In a
// container without a cgroup namespace, the process's path begins with the path of the mounted
// group; in a namespace, groups above the mounted one are invisible.
func memoryCgroups(root string) []memoryCgroup {
	var found []memoryCgroup
	for _, m := range cgroupMounts(root) {
		inside, ok := strings.CutPrefix(m.processCgroup, strings.TrimSuffix(m.root, "/"))
		if !ok || strings.HasPrefix(m.processCgroup, "/..") {
			inside = "/" // the process is outside of the mounted group
		}
		// Walk from the process's own group up to the mounted one.
		own := true
		for at := path.Clean("/" + inside); ; at = path.Dir(at) {
			found = append(found, memoryCgroup{dir: root + path.Join(m.point, at)[1:], v2: m.v2, isOwn: own})
			if own = false; at == "/" {
				break
			}
		}
	}
	return found
}

// A cgroupMount is a mounted hierarchy of control groups.
type cgroupMount struct {
	root          string // path of the mounted group in its hierarchy
	point         string // mount point
	processCgroup string // path of the process's group in the hierarchy
	v2            bool
}

// cgroupMounts returns the mounted hierarchies that may control memory.
func cgroupMounts(root string) []cgroupMount {
	v1, v2 := processCgroups(root)
	f, err := os.Open(root + "proc/self/mountinfo")
	if err != nil {
		return nil
	}
	defer f.Close()
	var found []cgroupMount
	for s := bufio.NewScanner(f); s.Scan(); {
		// proc(5): ID, parent, device, root, mount point, options, optional fields, a hyphen,
		// type, source, options of the file system.
		before, after, ok := strings.Cut(s.Text(), " - ")
		fields, system := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 5 || len(system) < 3 {
			continue
		}
		m := cgroupMount{root: unescapeMountinfo(fields[3]), point: unescapeMountinfo(fields[4]),
			v2: system[0] == "cgroup2"}
		switch {
		case m.v2:
			m.processCgroup = v2
		case system[0] == "cgroup" && hasMemoryController(system[2]):
			m.processCgroup = v1
		}
		if m.processCgroup != "" && path.IsAbs(m.point) {
			found = append(found, m)
		}
	}
	return found
}

// processCgroups returns the process's groups in the hierarchy of version 1 that controls memory,
// and in that of version 2; empty if the process is in none.
func processCgroups(root string) (v1, v2 string) {
	b, _ := os.ReadFile(root + "proc/self/cgroup")
	for line := range strings.Lines(string(b)) {
		// cgroups(7): hierarchy, controllers, path, which may contain colons.
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		switch {
		case len(parts) != 3:
		case parts[0] == "0" && parts[1] == "":
			v2 = parts[2]
		case hasMemoryController(parts[1]):
			v1 = parts[2]
		}
	}
	return v1, v2
}

// hasMemoryController reports whether a list of controllers or mount options contains "memory".
func hasMemoryController(list string) bool {
	return slices.Contains(strings.Split(list, ","), "memory")
}

// unescapeMountinfo decodes the escapes of mountinfo.
func unescapeMountinfo(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// limit returns the group's limit, and false if it has none. Version 1 also reports the limit of
// parents that are invisible in a container.
func (g memoryCgroup) limit() (int64, bool) {
	if g.v2 {
		return g.readLimit("memory.max")
	}
	n, ok := g.readLimit("memory.limit_in_bytes")
	stat, _ := os.ReadFile(path.Join(g.dir, "memory.stat"))
	if all, found := numberAfter(stat, "hierarchical_memory_limit"); found && all < minUnlimited && (!ok || all < n) {
		return all, true
	}
	return n, ok
}

// oomKills returns how many processes of the group the kernel has killed for want of memory, and
// false if the kernel does not count them.
func (g memoryCgroup) oomKills() (int64, bool) {
	name := "memory.oom_control"
	if g.v2 {
		name = "memory.events"
	}
	b, _ := os.ReadFile(path.Join(g.dir, name))
	return numberAfter(b, "oom_kill")
}

// readLimit returns the limit in a file, and false if the file contains none.
func (g memoryCgroup) readLimit(name string) (int64, bool) {
	b, _ := os.ReadFile(path.Join(g.dir, name))                    // empty after an error, which ParseInt reports
	n, err := strconv.ParseInt(string(bytes.TrimSpace(b)), 10, 64) // an error for "max" too
	return n, err == nil && n < minUnlimited
}

// numberAfter returns the number after name on the line of b that begins with name.
func numberAfter(b []byte, name string) (int64, bool) {
	for line := range bytes.Lines(b) {
		words := bytes.Fields(line)
		if len(words) >= 2 && string(words[0]) == name {
			n, err := strconv.ParseInt(string(words[1]), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
