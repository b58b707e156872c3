package bolt

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

const (
	crashRounds = 30
	crashHosts  = 7
	crashEnv    = "DECORUM_BOLT_CRASH" // environment variable of the child: path of the file
)

// TestCrash: a process that writes to a store is killed 30 times. Each time the store has all calls
// before the last Flush, and the calls that it has after that have no gap.
func TestCrash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "frontier.db")
	last := 0
	for round := range crashRounds {
		flushed := runAndKill(t, path, last+1)
		got := checkAfterCrash(t, path)
		if got < flushed || got < last {
			t.Fatalf("round %d: the last number is %d, %d was flushed, %d was there before", round, got, flushed, last)
		}
		last = got
	}
	t.Logf("%d numbers in %d rounds", last, crashRounds)
}

// runAndKill runs the child from a number on, kills it at a random time, and returns the last number
// that the child reported as flushed.
func runAndKill(t *testing.T, path string, from int) (flushed int) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestCrashChild$", "-test.v")
	child.Env = append(os.Environ(), crashEnv+"="+path, "DECORUM_BOLT_FROM="+strconv.Itoa(from))
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() { // the time until the kill begins at the first flush
		if n, err := fmt.Sscanf(lines.Text(), "flushed %d", &flushed); n == 1 && err == nil {
			break
		}
	}
	time.AfterFunc(time.Duration(rand.IntN(60_000))*time.Microsecond, func() { child.Process.Kill() })
	for lines.Scan() {
		fmt.Sscanf(lines.Text(), "flushed %d\n", &flushed)
	}
	if err := child.Wait(); err == nil || child.ProcessState.ExitCode() != -1 {
		t.Fatalf("the child ended by itself: %v", child.ProcessState)
	}
	return flushed
}

// TestCrashChild is the process that TestCrash kills. For each number it admits a host, adds a URL and
// sets a note to the number; then it acks a lease and sets a note to the number of finished URLs.
func TestCrashChild(t *testing.T) {
	path := os.Getenv(crashEnv)
	if path == "" {
		t.Skip("run by TestCrash")
	}
	s, err := Open(path, Options{FlushEvery: 2 * time.Millisecond, FlushAfterChanges: 50, MaxBufferedChanges: 300,
		PrefetchCount: 4, noSync: true, PostInterruptionDelay: 1, maxCheckpointPages: 6, MaxHostsInMemory: 2})
	must(t, err)
	from, err := strconv.Atoi(os.Getenv("DECORUM_BOLT_FROM"))
	must(t, err)
	done := mustReadNumber(t, s, crashOrigin(0), "done")
	for i := from; ; i++ {
		o := crashOrigin(i)
		e := crashEntry(t, i)
		_, err := s.AdmitHostsWithinLimits(t.Context(), []storage.HostToAdmit{crashHost(i)}, storage.HostCountLimits{})
		must(t, err)
		_, err = s.Add(t.Context(), []storage.Entry{e}, 0)
		must(t, err)
		must(t, s.SetNote(t.Context(), o, "last", []byte(strconv.Itoa(i))))
		leases, _, err := s.Lease(t.Context(), time.Now().Add(time.Hour), time.Hour, 1)
		must(t, err)
		for _, l := range leases {
			// The outcome is Done, Requeue or RetryAt.
			a := storage.Ack{Lease: l, Outcome: storage.AckOutcome(i % 3), HostState: &storage.HostState{Slots: i % 4}}
			if a.Outcome == storage.Done {
				done++
			}
			must(t, s.Ack(t.Context(), []storage.Ack{a}))
		}
		must(t, s.SetNote(t.Context(), crashOrigin(0), "done", []byte(strconv.Itoa(done))))
		if i%100 == 0 {
			must(t, s.Flush(t.Context()))
			fmt.Println("flushed", i) // one system call, which a kill does not split
		}
	}
}

// crashHost returns the host that TestCrashChild admits for a number.
func crashHost(i int) storage.HostToAdmit {
	return storage.HostToAdmit{Host: fmt.Sprintf("%d.counted.example", i), Domain: "counted.example"}
}

// checkHostsAfterCrash checks that each host up to the last number is counted once, and after it at most
// the host whose note was lost.
func checkHostsAfterCrash(t *testing.T, s *Store, last int) {
	t.Helper()
	for i := max(1, last-50); i <= last+1; i++ {
		got, err := s.AdmittedHostTotalsFor(t.Context(), crashHost(i))
		must(t, err)
		if i <= last && !got.IncludesHost {
			t.Errorf("host %d is not counted, note %d is there", i, last)
		}
		if got.Hosts < last || got.Hosts > last+1 || got.DomainHosts != got.Hosts {
			t.Fatalf("%d hosts are counted, %d of the domain, note %d is there", got.Hosts, got.DomainHosts, last)
		}
	}
}

// checkAfterCrash opens the store of a killed process and returns the last number in it.
func checkAfterCrash(t *testing.T, path string) (last int) {
	t.Helper()
	now := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	const delay = 3 * time.Second
	s, err := Open(path, Options{PostInterruptionDelay: delay, noSync: true, Now: func() time.Time { return now }})
	must(t, err)
	defer func() { must(t, s.Close()) }()

	notes := make([]int, crashHosts)
	for h := range notes {
		notes[h] = mustReadNumber(t, s, crashOrigin(h), "last")
		last = max(last, notes[h])
	}
	checkHostsAfterCrash(t, s, last)
	for i := max(1, last-crashHosts+1); i <= last; i++ {
		if notes[i%crashHosts] != i {
			t.Errorf("note %d is missing, note %d is there", i, last)
		}
	}
	for i := max(1, last-300); i <= last; i++ {
		if results, err := s.Add(t.Context(), []storage.Entry{crashEntry(t, i)}, 0); err != nil ||
			results[0] != storage.Duplicate {
			t.Errorf("URL %d is missing, note %d is there (%v)", i, last, err)
		}
	}
	checkCounts(t, s, last)
	if leases := mustLease(t, s, now.Add(delay-1), 100); len(leases) > 0 {
		t.Errorf("%d leases before PostInterruptionDelay", len(leases))
	}
	if c := must1(s.Counts(t.Context())); c.QueuedURLs > 0 && len(mustLease(t, s, now.Add(delay), 100)) == 0 {
		t.Error("no lease after PostInterruptionDelay")
	}
	return last
}

// checkCounts compares the counts of the store with the notes. The store may have a call without the
// SetNote after it.
func checkCounts(t *testing.T, s *Store, last int) {
	t.Helper()
	c := must1(s.Counts(t.Context()))
	if c.SeenURLs != last && c.SeenURLs != last+1 {
		t.Errorf("%d URLs for %d numbers", c.SeenURLs, last)
	}
	done := mustReadNumber(t, s, crashOrigin(0), "done")
	if finished := c.SeenURLs - c.QueuedURLs; finished != done && finished != done+1 {
		t.Errorf("%d URLs are finished, %d are noted", finished, done)
	}
}

func crashOrigin(i int) decorum.Origin {
	u, _ := decorum.ParseURL(fmt.Sprintf("https://h%d.example/", i%crashHosts))
	return u.Origin()
}

func crashEntry(t *testing.T, i int) storage.Entry {
	t.Helper()
	u, err := decorum.ParseURL(fmt.Sprintf("%v/%d", crashOrigin(i), i))
	must(t, err)
	return storage.Entry{URL: u, PriorityClass: storage.PriorityClass(i % storage.NumClasses)}
}

// mustReadNumber returns the number under the key, 0 without such a note.
func mustReadNumber(t *testing.T, s *Store, o decorum.Origin, key string) int {
	t.Helper()
	b, err := s.ReadNote(t.Context(), o, key)
	must(t, err)
	n, _ := strconv.Atoi(string(b))
	return n
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
