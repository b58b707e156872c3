package memlimit

import (
	"bufio"
	"bytes"
	"os"
	"path"
	"strconv"
	"strings"
)

// unlimited is the smallest value that means no limit: version 1 writes the largest
// multiple of a page that an int64 holds.
const unlimited = 1 << 60

// A group is a control group that limits the memory of the process.
type group struct {
	dir string
	v2  bool
	own bool // the group contains the process itself, not only a group below it
}

// groups returns the control groups that limit the process's memory, its own first. In
// a container without a cgroup namespace, the process's path begins with the path of
// the mounted group; in a namespace, groups above it are invisible.
func groups(root string) []group {
	var found []group
	for _, m := range mounts(root) {
		inside, ok := strings.CutPrefix(m.member, strings.TrimSuffix(m.root, "/"))
		if !ok || strings.HasPrefix(m.member, "/..") {
			inside = "/" // the process is outside of the mounted group
		}
		own := true
		for at := path.Clean("/" + inside); ; at = path.Dir(at) {
			found = append(found, group{dir: root + path.Join(m.point, at)[1:], v2: m.v2, own: own})
			if own = false; at == "/" {
				break
			}
		}
	}
	return found
}

// A mount is a mounted hierarchy of control groups.
type mount struct {
	root   string // the group at the mount's point
	point  string
	member string // the process's group in the hierarchy
	v2     bool
}

// mounts returns the mounted hierarchies that may control memory.
func mounts(root string) []mount {
	one, two := membership(root)
	f, err := os.Open(root + "proc/self/mountinfo")
	if err != nil {
		return nil
	}
	defer f.Close()
	var found []mount
	for s := bufio.NewScanner(f); s.Scan(); {
		// proc(5): ID, parent, device, root, mount point, options, optional fields, a
		// hyphen, type, source, options of the file system.
		before, after, ok := strings.Cut(s.Text(), " - ")
		fields, system := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 5 || len(system) < 3 {
			continue
		}
		m := mount{root: unescape(fields[3]), point: unescape(fields[4]), v2: system[0] == "cgroup2"}
		switch {
		case m.v2:
			m.member = two
		case system[0] == "cgroup" && hasController(system[2]):
			m.member = one
		}
		if m.member != "" && path.IsAbs(m.point) {
			found = append(found, m)
		}
	}
	return found
}

// membership returns the process's groups in the hierarchy of version 1 that controls
// memory, and in that of version 2; empty: it is in none.
func membership(root string) (one, two string) {
	b, err := os.ReadFile(root + "proc/self/cgroup")
	if err != nil {
		return "", ""
	}
	for line := range strings.Lines(string(b)) {
		// cgroups(7): hierarchy, controllers, path, which may hold colons.
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		switch {
		case len(parts) != 3:
		case parts[0] == "0" && parts[1] == "":
			two = parts[2]
		case hasController(parts[1]):
			one = parts[2]
		}
	}
	return one, two
}

func hasController(list string) bool {
	for name := range strings.SplitSeq(list, ",") {
		if name == "memory" {
			return true
		}
	}
	return false
}

// unescape undoes the escapes of mountinfo.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// limit returns the group's limit, and false if it has none. Version 1 also gives the
// limit of parents that are invisible in a container.
func (g group) limit() (int64, bool) {
	if g.v2 {
		return g.number("memory.max")
	}
	n, ok := g.number("memory.limit_in_bytes")
	stat, _ := os.ReadFile(path.Join(g.dir, "memory.stat"))
	if all, found := field(stat, "hierarchical_memory_limit"); found && all < unlimited && (!ok || all < n) {
		return all, true
	}
	return n, ok
}

// usage returns how many bytes the group uses, without inactive pages of files.
func (g group) usage() (int64, error) {
	name, inactive := "memory.usage_in_bytes", "total_inactive_file"
	if g.v2 {
		name, inactive = "memory.current", "inactive_file"
	}
	n, err := readNumber(path.Join(g.dir, name))
	if err != nil {
		return 0, err
	}
	stat, err := os.ReadFile(path.Join(g.dir, "memory.stat"))
	idle, _ := field(stat, inactive)
	return max(n-idle, 0), err
}

// oomKills returns the group's count of processes that were killed.
func (g group) oomKills() (int64, bool) {
	name := "memory.oom_control"
	if g.v2 {
		name = "memory.events"
	}
	b, err := os.ReadFile(path.Join(g.dir, name))
	if err != nil {
		return 0, false
	}
	return field(b, "oom_kill")
}

// number returns the limit in a file, and false if the file does not hold one.
func (g group) number(name string) (int64, bool) {
	n, err := readNumber(path.Join(g.dir, name)) // "max" is an error, too
	return n, err == nil && n < unlimited
}

func readNumber(file string) (int64, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(string(bytes.TrimSpace(b)), 10, 64)
}

// field returns the number after name at the beginning of a line.
func field(b []byte, name string) (int64, bool) {
	for line := range bytes.Lines(b) {
		words := bytes.Fields(line)
		if len(words) >= 2 && string(words[0]) == name {
			n, err := strconv.ParseInt(string(words[1]), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
