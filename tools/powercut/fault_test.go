package powercut

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/tools/powercut/disk"
)

// crashMessages are texts in the output of a Go program that has crashed.
var crashMessages = []string{"panic:", "fatal error:", "goroutine 1 [", "unexpected fault address", "SIGBUS"}

// checkEnd checks that a run ended by itself without a crash, and with an error message if it
// failed.
func (r commandResult) checkEnd(t *testing.T) {
	t.Helper()
	switch {
	case r.timedOut:
		t.Errorf("the crawl was idle:\n%s", r.stderr)
	case r.exitCode < 0:
		t.Errorf("the crawl was killed by a signal:\n%s", r.stderr)
	case r.exitCode > 0 && strings.TrimSpace(r.stderr) == "":
		t.Errorf("exit code %d without a message", r.exitCode)
	}
	for _, c := range crashMessages {
		if strings.Contains(r.stderr, c) {
			t.Errorf("the program crashed:\n%.2000s", r.stderr)
			return
		}
	}
}

// TestFaults: an operation on the disk fails with EIO, once or permanently. The crawl continues or
// ends with an error. After a power cut, which also repairs the disk, the resumed crawl completes
// and has lost nothing.
func TestFaults(t *testing.T) {
	for _, op := range []disk.OpKind{disk.Write, disk.Sync, disk.Rename, disk.Truncate} {
		for i := range *faultMoments {
			seed := *firstSeed + uint64(i)
			t.Run(fmt.Sprint(op, " seed ", seed), func(t *testing.T) {
				t.Parallel()
				testFault(t, op, seed)
			})
		}
	}
}

// faultTargets lists the files whose operations fail, and about how many operations of the kind a
// crawl makes on each. A test makes one of these operations fail.
var faultTargets = map[disk.OpKind][]struct {
	name  string
	count int
}{
	disk.Write: {{"frontier.db", 120}, {"robots.db", 40}, {"pages", 80}, {"ledger", 200},
		{".warc.gz", 200}, {"", 400}},
	disk.Sync:     {{"frontier.db", 25}, {"robots.db", 15}, {"pages", 15}, {"ledger", 15}, {".warc.gz", 15}, {"", 80}},
	disk.Rename:   {{"", 2}},
	disk.Truncate: {{"", 2}},
}

// testFault runs a crawl with a fault, cuts the power, and resumes the crawl.
func testFault(t *testing.T, op disk.OpKind, seed uint64) {
	m, rnd := newMachine(t), rand.New(rand.NewPCG(seed, uint64(len(op))))
	defer m.logRepeatFlags(fmt.Sprintf("-run 'TestFaults/%s' -faults 1 -seed %d", op, seed))
	target := faultTargets[op][rnd.IntN(len(faultTargets[op]))]
	times := [...]int{1, -1}[rnd.IntN(2)]
	fault := disk.IOErrorRule{Op: op, NamePart: target.name, AfterCount: rnd.IntN(target.count), FailCount: times}
	injected := m.disk.InjectFault(fault)
	r := m.runCrawl(0)
	r.checkEnd(t)
	t.Logf("%s of %q, after %d, %d times: %d failed; exit code %d: %s",
		op, fault.NamePart, fault.AfterCount, fault.FailCount, m.disk.FailedOpCount(injected), r.exitCode, r.lastLine())
	m.cutPower(rnd) // also ends the fault
	m.resumeAndCheck()
}

// resumeAndCheck resumes the crawl, waits for its end, and checks it.
func (m *machine) resumeAndCheck() {
	m.t.Helper()
	switch r := m.runCrawl(0); {
	case r.timedOut:
		m.t.Errorf("the crawl was idle:\n%s", r.stderr)
	case r.exitCode != 0:
		m.t.Errorf("the crawl cannot be resumed, exit code %d: %s", r.exitCode, r.lastLine())
	default:
		m.checkFinishedCrawl()
	}
}

// TestFaultUnderMapping: a block of the state that is mapped into memory cannot be read, which
// raises SIGBUS, when the state is opened or while the crawl runs. The crawl ends with an error,
// and can be resumed when the disk is repaired.
func TestFaultUnderMapping(t *testing.T) {
	for i := range *faultMoments {
		seed := *firstSeed + uint64(i)
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			testMappingFault(t, seed)
		})
	}
}

// testMappingFault kills a crawl, resumes it with a failing read, and resumes it again without.
func testMappingFault(t *testing.T, seed uint64) {
	m, rnd := newMachine(t), rand.New(rand.NewPCG(seed, 7))
	defer m.logRepeatFlags(fmt.Sprintf("-run TestFaultUnderMapping -faults 1 -seed %d", seed))
	m.runCrawl(time.Duration(500+rnd.IntN(1000)) * time.Millisecond)
	m.remount() // drops the cached parts of files
	fault := disk.IOErrorRule{Op: disk.Read, NamePart: [...]string{"frontier.db", "robots.db"}[rnd.IntN(2)],
		FailCount: -1}
	// Inject the fault before the crawl opens the file, or while it runs.
	var injected *disk.IOErrorRule
	atStart := seed%2 == 0
	if atStart {
		fault.AfterCount = rnd.IntN(6)
		injected = m.disk.InjectFault(fault)
	} else {
		timer := time.AfterFunc(time.Duration(500+rnd.IntN(1000))*time.Millisecond, func() {
			m.disk.InjectFault(fault)
			if err := m.mount.DropFileCache("data/" + fault.NamePart); err != nil {
				t.Error(err)
			}
		})
		defer timer.Stop()
	}
	r := m.runCrawl(0)
	r.checkEnd(t)
	t.Logf("read of %s, at the start: %t; exit code %d: %s", fault.NamePart, atStart, r.exitCode, r.lastLine())
	if injected != nil && m.disk.FailedOpCount(injected) > 0 && r.exitCode == 0 {
		t.Error("the crawl did not report the fault")
	}
	m.disk.ClearFaults()
	m.remount()
	m.resumeAndCheck()
}

// remount unmounts the disk and mounts it again, without a power cut.
func (m *machine) remount() {
	m.t.Helper()
	m.powerOff()
	if err := m.powerOn(); err != nil {
		m.t.Fatal(err)
	}
}
