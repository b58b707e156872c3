package gate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/internal/robotstest"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// openNotes opens a store that several Gates share.
func openNotes(t *testing.T, file string) *bolt.NoteStore {
	t.Helper()
	notes, err := bolt.OpenNotes(file, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { notes.Close() })
	return notes
}

// A cloakingServer sends each User-Agent another file, and counts the requests.
type cloakingServer struct {
	mu            sync.Mutex     // guards requestCounts
	requestCounts map[string]int // by User-Agent and URL
}

func (c *cloakingServer) respond(agent string, u decorum.URL) *decorum.Response {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requestCounts[agent+" "+u.String()]++
	body := "User-agent: *\nDisallow: /not-for-" + agent + "\n"
	return &decorum.Response{URL: u, Status: http.StatusOK, Header: http.Header{}, Body: []byte(body)}
}

func (c *cloakingServer) totalRequests() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, asked := range c.requestCounts {
		n += asked
	}
	return n
}

// checkWithFetch calls Check of a Gate for a URL, and fetches the robots.txt if Check clears it.
func checkWithFetch(ctx context.Context, g *Gate, server *cloakingServer, now time.Time, u decorum.URL) error {
	for {
		c, err := g.Check(ctx, now, u)
		if err != nil || !c.IsForRobots() {
			return err
		}
		if _, err := g.RecordFetch(ctx, now, c, server.respond(g.cfg.UserAgent, c.URL()), nil); err != nil {
			return err
		}
	}
}

// TestGatesByUserAgent proves that Gates with different User-Agents share a store but no answers, and
// that Gates with the same User-Agent share answers and have independent caches.
func TestGatesByUserAgent(t *testing.T) {
	file := filepath.Join(t.TempDir(), "robots.db")
	notes := openNotes(t, file)
	server := &cloakingServer{requestCounts: map[string]int{}}
	gate := func(agent string, dialect robots.Dialect) *Gate {
		return New(Config{Agent: robots.AgentFromName(agent), UserAgent: agent, Dialect: dialect,
			SessionStart: testStart.Add(-time.Hour)}, notes)
	}
	a, b, yandex := gate("a", robots.Google), gate("b", robots.Google), gate("a", robots.Yandex)
	u := robotstest.URL(t, "https://example.com/not-for-a")
	now := testStart
	want := func(when string, g *Gate, kind error, requests int) {
		t.Helper()
		before := server.totalRequests()
		if err := checkWithFetch(t.Context(), g, server, now, u); !errors.Is(err, kind) {
			t.Errorf("%s: %v, want %v", when, err, kind)
		}
		if n := server.totalRequests() - before; n != requests {
			t.Errorf("%s: %d requests, want %d", when, n, requests)
		}
	}
	want("the first", a, decorum.Disallowed, 1)
	want("another User-Agent", b, nil, 1)
	want("another dialect", yandex, decorum.Disallowed, 1)
	second := gate("a", robots.Google)
	want("a second of the same", second, decorum.Disallowed, 0)
	if v, err := a.FileVersions(t.Context(), u.Origin()); err != nil || len(v) != 1 {
		t.Errorf("the files of others are among those of a: %+v, %v", v, err)
	}
	now = now.Add(25 * time.Hour) // all answers have expired
	want("the next day", second, decorum.Disallowed, 1)
	want("who has an older answer in mind", a, decorum.Disallowed, 0)
	want("another User-Agent the next day", b, nil, 1)
	if err := notes.Close(); err != nil {
		t.Fatal(err)
	}
	notes = openNotes(t, file)
	a, b = gate("a", robots.Google), gate("b", robots.Google)
	want("restarted", a, decorum.Disallowed, 0)
	want("another, restarted", b, nil, 0)
}

// TestGatesKeepWhatHolds proves that an answer of one Gate does not replace rules that are still valid
// for another Gate, which reads the answer when its rules expire.
func TestGatesKeepWhatHolds(t *testing.T) {
	s := newGateTest(t, Config{UserAgent: "anybot"})
	page := robotstest.URL(t, "https://example.com/b")
	s.fetchRobots(page, respondWith(200, "Cache-Control", "max-age=7200", "User-agent: *\nDisallow: /b\n"))
	// Clearing a page ends the time for which unused rules stay in force.
	s.wantCheck(robotstest.URL(t, "https://example.com/"), pageCleared)
	cfg := s.gate.cfg
	cfg.MaxTTL = time.Hour // the other Gate's rules expire earlier
	other := New(cfg, s.notes)
	at := testStart.Add(90 * time.Minute)
	c, err := other.Check(t.Context(), at, page)
	if err != nil || !c.IsForRobots() {
		t.Fatalf("%v, %v", c.URL(), err)
	}
	if _, err := other.RecordFetch(t.Context(), at, c, respondWith(200, "")(c.URL()), nil); err != nil {
		t.Fatal(err)
	}
	s.now = at
	s.wantCheck(page, disallowed)
	s.now = testStart.Add(2 * time.Hour)
	s.wantCheck(page, pageCleared)
}

// TestOldRecordCounts proves that a record without User-Agent in its key counts, and that the first Gate
// that fetches the robots.txt again replaces it.
func TestOldRecordCounts(t *testing.T) {
	s := newGateTest(t, Config{})
	page := robotstest.URL(t, "https://example.com/b")
	s.fetchRobots(page, respondWith(200, "User-agent: *\nDisallow: /b\n"))
	s.gate.cfg.UserAgent = "anybot/1"
	s.restart()
	s.wantCheck(page, disallowed)
	s.now = s.now.Add(25 * time.Hour)
	s.fetchRobots(page, failDownload)
	if _, err := s.check(page); !errors.Is(err, decorum.Unreachable) {
		t.Errorf("after a failure: %v", err)
	}
	if s.notes.notes[noteID{page.Origin(), "robots"}] != nil {
		t.Error("the old record is still there")
	}
	s.restart()
	s.now = s.now.Add(31 * day) // FETCH-13: the last good copy is in the new record
	for range 2 {
		s.now = s.now.Add(7 * day)
		s.fetchRobots(page, failDownload)
	}
	if rules, err := s.gate.Rules(t.Context(), page.Origin()); err != nil || rules.Check(page).Allowed {
		t.Errorf("the last good copy is lost: %v", err)
	}
}

// TestGatesAtOnce runs many workers of several Gates on one store. No Gate ever uses a file for another
// User-Agent, or fetches more often than necessary.
func TestGatesAtOnce(t *testing.T) {
	notes := openNotes(t, filepath.Join(t.TempDir(), "robots.db"))
	server := &cloakingServer{requestCounts: map[string]int{}}
	agents := []string{"a", "a", "b", "c"}
	const origins, days = 20, 4
	var judged atomic.Int64
	for day := range days {
		now := testStart.AddDate(0, 0, day).Add(time.Duration(day) * time.Hour)
		var all sync.WaitGroup
		for i, agent := range agents {
			g := New(Config{Agent: robots.AgentFromName(agent), UserAgent: agent, MaxCachedOrigins: 5}, notes)
			for w := range 4 {
				all.Go(func() {
					for n := range origins {
						u := fmt.Sprintf("https://h%d.example/not-for-%s", (n*7+i+w)%origins, agents[(n+w)%len(agents)])
						err := checkWithFetch(t.Context(), g, server, now, robotstest.URL(t, u))
						switch {
						case errors.Is(err, decorum.Pending): // another worker of the same Gate is fetching
							continue
						case errors.Is(err, decorum.Disallowed) == strings.HasSuffix(u, "-"+agent):
							judged.Add(1)
						default:
							t.Errorf("%s: Check(%s): %v", agent, u, err)
						}
					}
				})
			}
		}
		all.Wait()
	}
	if judged.Load() == 0 {
		t.Error("no page was checked")
	}
	for at, n := range server.requestCounts {
		most := days
		if strings.HasPrefix(at, "a ") {
			most *= 2 // two Gates may fetch at the same time
		}
		if n > most {
			t.Errorf("%s is fetched %d times in %d days", at, n, days)
		}
	}
}
