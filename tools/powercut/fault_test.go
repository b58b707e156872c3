package powercut

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/tools/powercut/disk"
)

// crashes are what a Go program says that has crashed.
var crashes = []string{"panic:", "fatal error:", "goroutine 1 [", "unexpected fault address", "SIGBUS"}

// checkEnd checks that a run ended by itself, with an error that says something if it
// failed.
func (r run) checkEnd(t *testing.T) {
	t.Helper()
	switch {
	case r.hung:
		t.Errorf("the crawl was idle:\n%s", r.stderr)
	case r.code < 0:
		t.Errorf("the crawl was killed by a signal:\n%s", r.stderr)
	case r.code > 0 && strings.TrimSpace(r.stderr) == "":
		t.Errorf("exit code %d without a word", r.code)
	}
	for _, c := range crashes {
		if strings.Contains(r.stderr, c) {
			t.Errorf("the program crashed:\n%.2000s", r.stderr)
			return
		}
	}
}

// TestFaults: an operation on the disk fails with EIO, once or from then on. The crawl
// goes on, or ends with an error. When the disk is well again, after a power cut, the
// crawl goes on to its end and has lost nothing.
func TestFaults(t *testing.T) {
	for _, op := range []disk.Op{disk.Write, disk.Sync, disk.Rename, disk.Truncate} {
		for i := range *faults {
			seed := *seed + uint64(i)
			t.Run(fmt.Sprint(op, " seed ", seed), func(t *testing.T) {
				t.Parallel()
				failOperation(t, op, seed)
			})
		}
	}
}

// targets are the files whose operations fail, and about how many operations of the
// kind each of them has: a fault comes at one of these.
var targets = map[disk.Op][]struct {
	name  string
	count int
}{
	disk.Write:    {{"frontier.db", 120}, {"robots.db", 40}, {"pages", 80}, {"ledger", 200}, {".warc.gz", 200}, {"", 400}},
	disk.Sync:     {{"frontier.db", 25}, {"robots.db", 15}, {"pages", 15}, {"ledger", 15}, {".warc.gz", 15}, {"", 80}},
	disk.Rename:   {{"", 2}},
	disk.Truncate: {{"", 2}},
}

func failOperation(t *testing.T, op disk.Op, seed uint64) {
	m, chance := newMachine(t), rand.New(rand.NewPCG(seed, uint64(len(op))))
	defer m.sayHowToRepeat(fmt.Sprintf("-run 'TestFaults/%s' -faults 1 -seed %d", op, seed))
	target := targets[op][chance.IntN(len(targets[op]))]
	times := [...]int{1, -1}[chance.IntN(2)]
	fault := disk.Fault{Op: op, Name: target.name, After: chance.IntN(target.count), Times: times}
	injected := m.disk.Inject(fault)
	r := m.crawl(0)
	r.checkEnd(t)
	t.Logf("%s of %q, after %d, %d times: %d failed; exit code %d: %s",
		op, fault.Name, fault.After, fault.Times, m.disk.Hits(injected), r.code, r.lastLine())
	m.cutPower(chance) // which ends the fault, too
	m.finish()
}

// finish goes on with the crawl to its end, and examines it.
func (m *machine) finish() {
	m.t.Helper()
	switch r := m.crawl(0); {
	case r.hung:
		m.t.Errorf("the crawl was idle:\n%s", r.stderr)
	case r.code != 0:
		m.t.Errorf("the crawl does not go on, exit code %d: %s", r.code, r.lastLine())
	default:
		m.examine()
	}
}

// TestFaultUnderMapping: a block of the state cannot be read where it is mapped into
// memory, which raises SIGBUS: when the state is opened, or while the crawl runs. The
// crawl ends with an error, and goes on when the disk is well again.
func TestFaultUnderMapping(t *testing.T) {
	for i := range *faults {
		seed := *seed + uint64(i)
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			failMapping(t, seed)
		})
	}
}

func failMapping(t *testing.T, seed uint64) {
	m, chance := newMachine(t), rand.New(rand.NewPCG(seed, 7))
	defer m.sayHowToRepeat(fmt.Sprintf("-run TestFaultUnderMapping -faults 1 -seed %d", seed))
	m.crawl(time.Duration(500+chance.IntN(1000)) * time.Millisecond)
	m.cycle() // so that nothing of the file is in memory
	fault := disk.Fault{Op: disk.Read, Name: [...]string{"frontier.db", "robots.db"}[chance.IntN(2)], Times: -1}
	var injected *disk.Fault
	begins := seed%2 == 0
	if begins {
		fault.After = chance.IntN(6)
		injected = m.disk.Inject(fault)
	} else {
		breaks := time.AfterFunc(time.Duration(500+chance.IntN(1000))*time.Millisecond, func() {
			m.disk.Inject(fault)
			if err := m.mounted.Forget("data/" + fault.Name); err != nil {
				t.Error(err)
			}
		})
		defer breaks.Stop()
	}
	r := m.crawl(0)
	r.checkEnd(t)
	t.Logf("read of %s, as it begins: %t; exit code %d: %s", fault.Name, begins, r.code, r.lastLine())
	if injected != nil && m.disk.Hits(injected) > 0 && r.code == 0 {
		t.Error("the crawl has not noticed")
	}
	m.disk.Heal()
	m.cycle()
	m.finish()
}

// cycle unmounts the disk and mounts it again, as it is.
func (m *machine) cycle() {
	m.t.Helper()
	m.powerOff()
	if err := m.powerOn(); err != nil {
		m.t.Fatal(err)
	}
}
