package robots

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
)

// A lookupExample is one line of testdata/fetch-examples.jsonl.
type lookupExample struct {
	Req             string
	Dialect         string
	RobotsURL       string `json:"robots_url"`
	Responses       []scripted
	Cached          *scripted
	UnreachableDays *int     `json:"unreachable_days"`
	KnownBlocked    []string `json:"known_blocked"`
	SessionStart    bool     `json:"session_start"`
	MaxTTLHours     float64  `json:"max_ttl_hours"`
	Want            string
	Requests        *int
	Checks          []struct {
		Agent, URL string
		Allowed    bool
	}
	Note string
}

// A scripted response is what a server is to answer.
type scripted struct {
	Status   int
	Error    string
	Location string
	Headers  map[string]string
	Body     string
	Generate *struct {
		Prefix, Suffix string
		PadTo          int `json:"pad_to"`
	}
	AgeHours float64 `json:"age_hours"` // of a cached copy
}

// TestLookupExamples runs the examples of how robots.txt files are had.
func TestLookupExamples(t *testing.T) {
	for i, text := range readLines(t, "testdata/fetch-examples.jsonl") {
		var x lookupExample
		decodeExample(t, text, &x)
		for _, d := range dialects(t, x.Dialect) {
			t.Run(fmt.Sprintf("%s/%d/%s", x.Req, i+1, d), func(t *testing.T) {
				if err := x.run(t, d); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// run sets the scene, makes the lookup, and compares.
func (x *lookupExample) run(t *testing.T, d Dialect) error {
	s := newScene(t, GateConfig{Dialect: d, MaxTTL: time.Duration(x.MaxTTLHours * float64(time.Hour))})
	page := mustURL(t, "https://example.com/")
	if x.RobotsURL != "" {
		page = mustURL(t, x.RobotsURL)
	}
	x.prepare(s, page)
	if x.SessionStart && d == Yandex { // to others a session means nothing
		s.newSession()
	}

	outcome, requests := Unknown, 0
	c, err := s.check(page)
	for err == nil && c.ForRobots() {
		if requests == len(x.Responses) {
			return fmt.Errorf("asks for %v after %d requests", c.URL(), requests)
		}
		lesson := s.learn(c, x.Responses[requests].to(c.URL()))
		outcome = lesson.Outcome
		requests++
		if lesson.Hop.IsZero() {
			break
		}
		c, err = s.gate.CheckHop(t.Context(), s.now, lesson.Hop, page.Origin())
		var end *ChainEnd
		if errors.As(err, &end) {
			outcome = end.Lesson.Outcome
		}
	}
	got := outcome.String()
	if requests == 0 && c.File().Outcome == RulesKnown {
		got = CachedRules.String() // to the examples, a lookup that the cache answers
	} else if requests == 0 {
		got = c.File().Outcome.String()
	}
	if got != x.Want {
		return fmt.Errorf("outcome = %s, want %s", got, x.Want)
	}
	if x.Requests != nil && requests != *x.Requests {
		return fmt.Errorf("%d requests, want %d", requests, *x.Requests)
	}
	return x.verdicts(s)
}

// verdicts makes the checks, each agent with a Gate of its own that knows
// what the notes tell (CACHE-03).
func (x *lookupExample) verdicts(s *scene) error {
	for _, want := range x.Checks {
		cfg := s.gate.cfg
		cfg.Agent = Named(want.Agent)
		c, err := NewGate(cfg, s.notes).Check(s.t.Context(), s.now, mustURL(s.t, want.URL))
		if c.ForRobots() {
			return fmt.Errorf("agent %s: robots.txt is asked for again", want.Agent)
		}
		if allowed := err == nil; allowed != want.Allowed {
			return fmt.Errorf("agent %s, %s: allowed = %v, want %v (%v)", want.Agent, want.URL, allowed, want.Allowed, err)
		}
	}
	return nil
}

// prepare brings about what the example says was before.
func (x *lookupExample) prepare(s *scene, page decorum.URL) {
	start := s.now
	if x.Cached != nil {
		s.now = start.Add(-time.Duration(x.Cached.AgeHours * float64(time.Hour)))
		if x.Cached.Status == 0 {
			x.Cached.Status = http.StatusOK
		}
		s.lookup(page, x.Cached.to)
		s.restart() // its age alone decides, and not that no page has been cleared by it
	}
	if x.UnreachableDays != nil {
		// A Gate that trusts nothing for long finds the server failing while
		// the copy would still hold.
		wary := *s
		wary.gate = NewGate(GateConfig{MaxTTL: time.Minute}, s.notes)
		for days := *x.UnreachableDays; days > 0; days-- {
			wary.now = start.Add(-time.Duration(days) * day)
			wary.lookup(page, scripted{Status: http.StatusInternalServerError}.to)
		}
	}
	s.now = start
	for _, blocked := range x.KnownBlocked {
		u := mustURL(s.t, blocked)
		s.lookup(u, scripted{Status: http.StatusOK, Body: "User-agent: *\nDisallow: " + u.Path() + "\n"}.to)
	}
}

// to returns the response of a server that is asked for u, nil for none.
func (r scripted) to(u decorum.URL) *decorum.Response {
	if r.Error != "" {
		return nil
	}
	res := &decorum.Response{URL: u, Status: r.Status, Header: http.Header{}, Body: []byte(r.Body)}
	for name, value := range r.Headers {
		res.Header.Set(name, value)
	}
	if r.Location != "" {
		res.Header.Set("Location", r.Location)
	}
	if g := r.Generate; g != nil {
		padding := bytes.Repeat([]byte("#"), g.PadTo-len(g.Prefix)-1)
		res.Body = slices.Concat([]byte(g.Prefix), padding, []byte("\n"+g.Suffix))
	}
	return res
}

// A scene is a Gate, its notes, and the time.
type scene struct {
	t     testing.TB
	gate  *Gate
	notes *notebook
	now   time.Time
}

// sceneTime is when scenes begin.
var sceneTime = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// newScene sets a scene. In the Yandex dialect its session began a month ago.
func newScene(t testing.TB, cfg GateConfig) *scene {
	t.Helper()
	if cfg.Dialect == Yandex && cfg.Session.IsZero() {
		cfg.Session = sceneTime.Add(-30 * day)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	if cfg.Agent.Token() == "" {
		cfg.Agent = Named("anybot")
	}
	notes := newNotebook()
	return &scene{t, NewGate(cfg, notes), notes, sceneTime}
}

// restart makes the process begin anew: only the notes remain.
func (s *scene) restart() { s.gate = NewGate(s.gate.cfg, s.notes) }

// newSession is a restart that begins a session.
func (s *scene) newSession() {
	s.gate.cfg.Session = s.now
	s.restart()
}

func (s *scene) check(u decorum.URL) (Clearance, error) {
	return s.gate.Check(s.t.Context(), s.now, u)
}

// learn hands in a response; nil stands for a failed download.
func (s *scene) learn(c Clearance, res *decorum.Response) Lesson {
	s.t.Helper()
	var failed error
	if res == nil {
		failed = errors.New("connection reset by peer")
	}
	lesson, err := s.gate.Learn(s.t.Context(), s.now, c, res, failed)
	if err != nil {
		s.t.Fatal(err)
	}
	return lesson
}

// lookup makes the visit that must come before one to page.
func (s *scene) lookup(page decorum.URL, answer func(decorum.URL) *decorum.Response) Lesson {
	s.t.Helper()
	return s.learn(s.wantRobotsFetch(page), answer(page.Origin().RobotsURL()))
}

// wantPause expects the pause that the origin's rules ask for; 0: none.
func (s *scene) wantPause(o decorum.Origin, want time.Duration) {
	s.t.Helper()
	if pause, _, err := s.gate.Pace(s.t.Context(), o, s.now); err != nil || pause != want {
		s.t.Errorf("at %v: Pace(%v) = %v, %v; want %v", s.now, o, pause, err, want)
	}
}

// wantRobotsFetch expects that robots.txt must be visited before page.
func (s *scene) wantRobotsFetch(page decorum.URL) Clearance {
	s.t.Helper()
	c, err := s.check(page)
	if err != nil || !c.ForRobots() || c.Hop() != 0 {
		s.t.Fatalf("at %v: Check(%v) = %v, %v; want the robots.txt", s.now, page, c.URL(), err)
	}
	if want := page.Origin().RobotsURL(); c.URL() != want || c.Origin() != page.Origin() {
		s.t.Fatalf("Check(%v) clears %v for %v, want %v", page, c.URL(), c.Origin(), want)
	}
	return c
}

// answers scripts a response from a status and, in pairs, names and values of
// headers; a value without name is the body.
func answers(status int, rest ...string) func(decorum.URL) *decorum.Response {
	r := scripted{Status: status, Headers: map[string]string{}}
	for len(rest) > 1 {
		r.Headers[rest[0]] = rest[1]
		rest = rest[2:]
	}
	r.Body = strings.Join(rest, "")
	return r.to
}

// fails scripts a failed download.
func fails(decorum.URL) *decorum.Response { return nil }
