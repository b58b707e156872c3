package memlimit

import (
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
)

const (
	meminfo   = "MemTotal:        8388608 kB\nMemFree:  1000 kB\nMemAvailable:    6291456 kB\n" // 8 GiB
	mountV1   = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:7 - cgroup cgroup rw,memory\n"
	mountCPU  = "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
	mountV2   = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
	noLimitV1 = "9223372036854771712\n"
)

// limitTests holds file systems as kernels present them.
var limitTests = []struct {
	name   string
	files  map[string]string
	want   int64
	source LimitSource
	kills  int64
}{
	{"machine", map[string]string{}, 8 << 30, Machine, -1},
	{"version 2", map[string]string{
		"proc/self/cgroup":                                         "0::/system.slice/decorum.service\n",
		"proc/self/mountinfo":                                      mountV2,
		"sys/fs/cgroup/system.slice/memory.max":                    "max\n",
		"sys/fs/cgroup/system.slice/memory.events":                 "oom 9\noom_kill 9\n",
		"sys/fs/cgroup/system.slice/decorum.service/memory.max":    "2147483648\n",
		"sys/fs/cgroup/system.slice/decorum.service/memory.stat":   "anon 1\ninactive_file 300000\n",
		"sys/fs/cgroup/system.slice/decorum.service/memory.events": "low 0\noom 4\noom_kill 3\noom_group_kill 0\n",
	}, 2 << 30, Cgroup, 3},
	{"version 2, a parent's limit is smaller", map[string]string{
		"proc/self/cgroup":             "0::/a/b\n",
		"proc/self/mountinfo":          mountV2,
		"sys/fs/cgroup/a/memory.max":   "1073741824\n",
		"sys/fs/cgroup/a/memory.stat":  "inactive_file 100\n",
		"sys/fs/cgroup/a/b/memory.max": "2147483648\n",
	}, 1 << 30, Cgroup, -1},
	{"version 2 in a namespace", map[string]string{
		"proc/self/cgroup":            "0::/\n",
		"proc/self/mountinfo":         mountV2,
		"sys/fs/cgroup/memory.max":    "536870912\n",
		"sys/fs/cgroup/memory.stat":   "inactive_file 9\n",
		"sys/fs/cgroup/memory.events": "oom_kill 0\n",
	}, 512 << 20, Cgroup, 0},
	{"version 1, nested", map[string]string{
		"proc/self/cgroup": "9:name=systemd:/\n4:memory:/p:q/r\n" +
			"1:cpu,cpuacct:/elsewhere\n0::/\n",
		"proc/self/mountinfo":                               mountCPU + mountV1,
		"sys/fs/cgroup/memory/memory.limit_in_bytes":        noLimitV1,
		"sys/fs/cgroup/memory/p:q/memory.limit_in_bytes":    "536870912\n",
		"sys/fs/cgroup/memory/p:q/memory.stat":              "inactive_file 1\ntotal_inactive_file 4000\n",
		"sys/fs/cgroup/memory/p:q/r/memory.limit_in_bytes":  noLimitV1,
		"sys/fs/cgroup/memory/p:q/r/memory.oom_control":     "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n",
		"sys/fs/cgroup/cpu/elsewhere/memory.limit_in_bytes": "1\n",
	}, 512 << 20, Cgroup, 5},
	{"version 1 in a container, whose parent cannot be seen", map[string]string{
		"proc/self/cgroup": "4:memory:/docker/0a\n",
		"proc/self/mountinfo": "35 31 0:32 /docker/0a /sys/fs/cgroup/memory\\040x ro - " +
			"cgroup cgroup rw,memory\n",
		"sys/fs/cgroup/memory x/memory.limit_in_bytes": noLimitV1,
		"sys/fs/cgroup/memory x/memory.stat":           "hierarchical_memory_limit 268435456\ntotal_inactive_file 3\n",
	}, 256 << 20, Cgroup, -1},
	{"both versions, no limit", map[string]string{
		"proc/self/cgroup": "4:memory:/\n0::/\n",
		"proc/self/mountinfo": mountV1 +
			"41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
		"sys/fs/cgroup/memory/memory.limit_in_bytes": noLimitV1,
		"sys/fs/cgroup/memory/memory.oom_control":    "oom_kill_disable 0\nunder_oom 0\n",
	}, 8 << 30, Machine, -1},
	{"a limit beyond the machine's memory", map[string]string{
		"proc/self/cgroup":         "0::/\n",
		"proc/self/mountinfo":      mountV2,
		"sys/fs/cgroup/memory.max": "99999999999\n",
	}, 8 << 30, Machine, -1},
	{"malformed files", map[string]string{
		"proc/self/cgroup":         "0::/../x\nmemory\n:::\n4:memory\n",
		"proc/self/mountinfo":      "\n - \n1 2 - cgroup2\n" + mountV2,
		"sys/fs/cgroup/memory.max": "a lot\n",
	}, 8 << 30, Machine, -1},
}

func TestLimit(t *testing.T) {
	for _, tt := range limitTests {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir() + "/"
			files := map[string]string{"proc/meminfo": meminfo}
			maps.Copy(files, tt.files)
			for name, content := range files {
				writeFile(t, root+name, content)
			}
			l := systemLimit(root)
			if l.Bytes != tt.want || l.Source != tt.source {
				t.Errorf("got a limit of %d by %s, want %d by %s", l.Bytes, l.Source, tt.want, tt.source)
			}
			kills, ok := oomKillsWithFSRoot(root)
			if want := max(tt.kills, 0); kills != want || ok != (tt.kills >= 0) {
				t.Errorf("got %d kills, %v, want %d", kills, ok, tt.kills)
			}
		})
	}
}

// TestNoSystem: without /proc the limit is unknown.
func TestNoSystem(t *testing.T) {
	if l := systemLimit(t.TempDir() + "/"); l != (Limit{}) {
		t.Errorf("got %+v", l)
	}
}

// TestRuntimeLimit: GOMEMLIMIT applies if it is the smallest limit.
func TestRuntimeLimit(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 20))
	l := Get()
	if l.Bytes != 1<<20 || l.Source != Runtime {
		t.Errorf("got %+v", l)
	}
	debug.SetMemoryLimit(math.MaxInt64 - 1)
	if l := Get(); l.Source == Runtime && systemLimit("/").Bytes != 0 {
		t.Errorf("got %+v", l)
	}
}

func writeFile(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
}
