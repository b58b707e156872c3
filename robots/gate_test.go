package robots

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
)

const someRules = "User-agent: *\nDisallow: /a\nCrawl-delay: 7\n\nSitemap: https://cdn.example.net/map.xml\n"

// want asserts what Check says of a URL. The words are "open", "robots.txt",
// or the Kind of the error.
func (s *scene) want(u decorum.URL, want string) (Clearance, error) {
	s.t.Helper()
	c, err := s.check(u)
	got := "open"
	var e *decorum.Error
	switch {
	case errors.As(err, &e):
		got = e.Kind.Error()
	case err != nil:
		got = err.Error()
	case c.ForRobots():
		got = "robots.txt"
	}
	if got != want {
		s.t.Errorf("at %v: Check(%v) = %s (%v), want %s", s.now.Format(time.DateTime), u, got, err, want)
	}
	if (err == nil) != c.Valid() {
		s.t.Errorf("Check(%v): Clearance.Valid() = %v with error %v", u, c.Valid(), err)
	}
	return c, err
}

const (
	open        = "open"
	asks        = "robots.txt"
	disallowed  = string(decorum.Disallowed)
	pending     = string(decorum.Pending)
	unreachable = string(decorum.Unreachable)
)

// TestStatus is the table of what each status, or none, means for an origin
// whose robots.txt is asked for the first time.
func TestStatus(t *testing.T) {
	const last = 1000
	a, b := mustURL(t, "https://example.com/a"), mustURL(t, "https://example.com/b")
	next := 0
	for _, row := range []struct {
		req     string
		to      int // from where the row before ends
		outcome Outcome
		a, b    string // what Check says of /a, which the body disallows, and /b
	}{
		{"FETCH-27", 199, DisallowedAll, unreachable, unreachable},
		{"FETCH-01", 299, RulesKnown, disallowed, open},
		{"FETCH-26", 303, AllowedAll, open, open}, // without Location
		{"FETCH-27", 304, DisallowedAll, unreachable, unreachable},
		{"FETCH-26", 399, AllowedAll, open, open},
		{"FETCH-07", 428, AllowedAll, open, open},
		{"FETCH-10", 429, DisallowedAll, unreachable, unreachable},
		{"FETCH-07", 499, AllowedAll, open, open},
		{"FETCH-09", 599, DisallowedAll, unreachable, unreachable},
		{"FETCH-18", last, DisallowedAll, unreachable, unreachable}, // no status at all
	} {
		t.Run(fmt.Sprintf("%s/%d to %d", row.req, next, row.to), func(t *testing.T) {
			for ; next <= row.to; next++ {
				s := newScene(t, GateConfig{})
				lesson := s.lookup(b, answers(next, someRules))
				if lesson.Outcome != row.outcome || lesson.Open != (row.b == open) || (lesson.Postponed == nil) != lesson.Open {
					t.Errorf("status %d: lesson %+v, want outcome %v", next, lesson, row.outcome)
				}
				s.want(a, row.a)
				s.want(b, row.b)
			}
		})
	}
}

func TestFailuresCloseTheOrigin(t *testing.T) {
	page := mustURL(t, "https://example.com/b")
	for name, visit := range map[string]struct {
		res *decorum.Response
		err error
	}{
		"FETCH-18/no response":         {nil, errors.New("i/o timeout")},
		"FETCH-18/nothing at all":      {nil, nil},
		"FETCH-19/part of a response":  {answers(200, "User-agent: *\n")(page), errors.New("unexpected EOF")},
		"FETCH-19/part of a not found": {answers(404)(page), errors.New("unexpected EOF")},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, GateConfig{})
			lesson, err := s.gate.Learn(t.Context(), s.now, s.wantRobotsFetch(page), visit.res, visit.err)
			if err != nil || lesson.Open || lesson.Outcome != DisallowedAll {
				t.Errorf("Learn = %+v, %v; want it closed", lesson, err)
			}
			s.want(page, unreachable)
		})
	}
}

func TestNotFoundPages(t *testing.T) {
	page := mustURL(t, "https://example.com/b")
	for _, test := range []struct {
		name    string
		phrases []string
		status  int
		body    string
		want    string
	}{
		{"FETCH-17/any case", nil, 500, "<title>PAGE NOT FOUND</title>", open},
		{"FETCH-17/Cyrillic capitals", nil, 502, "<h1>СТРАНИЦА НЕ НАЙДЕНА</h1>", open},
		{"FETCH-17/other words", nil, 500, "not found: database", unreachable},
		{"FETCH-17/never 503", nil, 503, "page not found", unreachable},
		{"FETCH-17/never 429", nil, 429, "page not found", unreachable},
		{"FETCH-17/own phrase", []string{"Ei löytynyt"}, 500, "<p>EI LÖYTYNYT</p>", open},
		{"FETCH-17/own phrases replace", []string{"gone fishing"}, 500, "page not found", unreachable},
		{"FETCH-17/switched off", []string{}, 500, "page not found", unreachable},
		{"FETCH-17/empty phrase", []string{""}, 500, "page not found", unreachable},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newScene(t, GateConfig{NotFound: test.phrases})
			s.lookup(page, answers(test.status, test.body))
			s.want(page, test.want)
		})
	}
}

// TestLesson pins what a caller is told, and what a Clearance can show.
func TestLesson(t *testing.T) {
	s := newScene(t, GateConfig{})
	a, b := mustURL(t, "https://example.com/a"), mustURL(t, "https://example.com/b?q=1")
	lesson := s.lookup(a, answers(200, someRules))
	if !lesson.Open || lesson.Origin != a.Origin() || !lesson.Hop.IsZero() {
		t.Errorf("lesson = %+v", lesson)
	}
	sitemaps, err := s.gate.Sitemaps(t.Context(), a.Origin())
	if err != nil || len(sitemaps) != 1 || sitemaps[0].String() != "https://cdn.example.net/map.xml" {
		t.Errorf("sitemaps = %v, %v", sitemaps, err)
	}
	// sha256sum of someRules
	want := Snapshot{"e3256bf828080009e0a4d73de73eb39b4f540b63b8fbaea7c3241f6e416db4e2", s.now, RulesKnown}
	c, _ := s.want(b, open)
	if c.URL() != b || c.Origin() != b.Origin() || c.ForRobots() || c.Hop() != 0 || !c.Verdict().Allowed || c.File() != want {
		t.Errorf("clearance for %v, verdict %+v, file %+v, want file %+v", c.URL(), c.Verdict(), c.File(), want)
	}
	_, err = s.want(a, disallowed)
	var no *Refusal
	if !errors.As(err, &no) || no.Verdict.Rule != "disallow: /a" || no.Verdict.Line != 2 || no.File != want {
		t.Errorf("refusal = %+v", no)
	}
	if want := "robots https://example.com/a: disallowed by robots.txt: disallow: /a (line 2, group *)"; err.Error() != want {
		t.Errorf("error = %q, want %q", err, want)
	}
	s.wantPause(a.Origin(), 7*time.Second)
}

func TestNothingIsKnown(t *testing.T) {
	s := newScene(t, GateConfig{})
	page := mustURL(t, "https://example.com/b")
	s.wantPause(page.Origin(), 0)
	if r, err := s.gate.Rules(t.Context(), page.Origin()); r != nil || err != nil {
		t.Errorf("Rules = %v, %v", r, err)
	}
	s.want(decorum.URL{}, string(decorum.Invalid))
	if (Clearance{}).Valid() || (Clearance{}).File() != (Snapshot{}) {
		t.Error("the zero Clearance is good for something")
	}
}

// TestForeignClearance: Learn takes only what this Gate has cleared for a
// robots.txt.
func TestForeignClearance(t *testing.T) {
	s, other := newScene(t, GateConfig{}), newScene(t, GateConfig{})
	page, known := mustURL(t, "https://example.com/b"), mustURL(t, "https://a.test/")
	theirs := other.wantRobotsFetch(page)
	s.wantRobotsFetch(page)
	s.lookup(known, answers(404))
	cleared, _ := s.want(known, open)
	for name, c := range map[string]Clearance{"zero": {}, "of another gate": theirs, "of a page": cleared} {
		if _, err := s.gate.Learn(t.Context(), s.now, c, nil, nil); !errors.Is(err, decorum.Invalid) {
			t.Errorf("Learn with a Clearance %s: %v, want it refused", name, err)
		}
		s.gate.Forget(c) // must not do harm
		s.want(page, pending)
		s.want(known, open)
	}
}

// TestRobotsURLIsAPage pins FETCH-29: a link to robots.txt waits for the rules
// like any page, and no rule can disallow it.
func TestRobotsURLIsAPage(t *testing.T) {
	s := newScene(t, GateConfig{})
	u := mustURL(t, "https://example.com/robots.txt")
	s.lookup(u, answers(200, "User-agent: *\nDisallow: /\n"))
	c, _ := s.want(u, open)
	if c.URL() != u || c.ForRobots() {
		t.Errorf("cleared as %v, ForRobots %v; want it as a page", c.URL(), c.ForRobots())
	}
	s.want(mustURL(t, "https://example.com/"), disallowed)
}

// TestBeside: what rules have cleared one URL for, they clear another for, or not,
// though they hold for no second one.
func TestBeside(t *testing.T) {
	s := newScene(t, GateConfig{})
	page, file := mustURL(t, "https://example.com/b"), mustURL(t, "https://example.com/.well-known/tdmrep.json")
	s.lookup(page, answers(200, "Cache-Control", "no-cache", "User-agent: *\nDisallow: /a\n"))
	s.now = s.now.Add(time.Hour)
	c, _ := s.want(page, open)
	also, err := c.Beside(file)
	if err != nil || also.URL() != file || also.ForRobots() || also.File() != c.File() || also.Origin() != c.Origin() {
		t.Errorf("cleared as %+v, %v", also, err)
	}
	if no, err := c.Beside(mustURL(t, "https://example.com/a")); !errors.Is(err, decorum.Disallowed) || no.Valid() {
		t.Errorf("%+v, %v, want it disallowed", no, err)
	}
	lookup, _ := s.want(page, asks) // they have served
	for name, no := range map[string]struct {
		c Clearance
		u decorum.URL
	}{"another origin": {c, mustURL(t, "http://example.com/b")}, "a robots.txt": {lookup, file}, "nothing": {Clearance{}, file}} {
		if also, err := no.c.Beside(no.u); !errors.Is(err, decorum.Invalid) || also.Valid() {
			t.Errorf("%s: %+v, %v, want it refused", name, also, err)
		}
	}
}

// TestOriginsAreApart pins LOC-03 and LOC-16.
func TestOriginsAreApart(t *testing.T) {
	s := newScene(t, GateConfig{})
	s.lookup(mustURL(t, "https://example.com/"), answers(200, "User-agent: *\nDisallow: /\n"))
	for _, other := range []string{"http://example.com/", "https://example.com:8443/", "https://www.example.com/"} {
		s.want(mustURL(t, other), asks)
	}
}

// TestTruncated pins FMT-11 for a body that the fetcher cut.
func TestTruncated(t *testing.T) {
	for _, test := range []struct {
		name, body string
		truncated  bool
		want       string // of /private
	}{
		{"whole", "User-agent: *\nDisallow: /p", false, disallowed},
		{"cut within a line", "User-agent: *\nDisallow: /p", true, open},
		{"cut after a line", "User-agent: *\nDisallow: /p\n", true, disallowed},
		{"cut within the first line", "User-agent: *", true, open},
	} {
		t.Run("FMT-11/"+test.name, func(t *testing.T) {
			s := newScene(t, GateConfig{})
			page := mustURL(t, "https://example.com/private")
			s.lookup(page, func(u decorum.URL) *decorum.Response {
				res := answers(200, test.body)(u)
				res.Truncated = test.truncated
				return res
			})
			s.want(page, test.want)
		})
	}
}

// TestNotesFail: what cannot be read is not allowed, what cannot be kept is
// not learnt.
func TestNotesFail(t *testing.T) {
	page := mustURL(t, "https://example.com/b")
	s := newScene(t, GateConfig{})
	s.notes.broken = true
	if c, err := s.check(page); !errors.Is(err, errBroken) || c.Valid() {
		t.Errorf("Check = %v, %v", c, err)
	}
	s.notes.broken = false
	c := s.wantRobotsFetch(page)
	s.notes.broken = true
	if _, err := s.gate.Learn(t.Context(), s.now, c, answers(200)(page), nil); !errors.Is(err, errBroken) {
		t.Errorf("Learn: %v", err)
	}
	if _, err := s.gate.CheckHop(t.Context(), s.now, page, mustURL(t, "http://a.test/").Origin()); !errors.Is(err, errBroken) {
		t.Errorf("CheckHop: %v", err)
	}
	s.want(page, pending)
	s.notes.broken = false
	s.now = s.now.Add(2 * time.Minute)
	s.want(page, asks)
}

// TestDamagedNote: a note that cannot be read is no permission.
func TestDamagedNote(t *testing.T) {
	page := mustURL(t, "https://example.com/b")
	s := newScene(t, GateConfig{})
	s.lookup(page, answers(200, someRules))
	good := s.notes.notes[noteAt{page.Origin(), "robots"}]
	for i := range good {
		bad := append([]byte(nil), good...)
		bad[i] ^= 0x10
		s.notes.notes[noteAt{page.Origin(), "robots"}] = bad
		s.restart()
		s.want(page, asks)
	}
	for n := range good {
		s.notes.notes[noteAt{page.Origin(), "robots"}] = good[:n]
		s.restart()
		s.want(page, asks)
	}
}

func TestGateCheckAllocatesNothing(t *testing.T) {
	s := newScene(t, GateConfig{})
	page := mustURL(t, "https://example.com/b")
	s.lookup(page, answers(200, someRules))
	if n := testing.AllocsPerRun(100, func() { s.check(page) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestGateConfig(t *testing.T) {
	for name, cfg := range map[string]GateConfig{
		"negative TTL":        {MinTTL: -1},
		"least above most":    {MinTTL: 48 * time.Hour},
		"fewer than 5 hops":   {MaxHops: 4},
		"negative hops":       {MaxHops: -1},
		"negative outage":     {Outage: -1},
		"negative patience":   {Patience: -1},
		"negative origins":    {Origins: -1},
		"negative retry":      {Retry: Backoff{First: -1}},
		"negative retry max":  {Retry503: Backoff{Max: -1}},
		"retry above its max": {Retry: Backoff{First: 2, Max: 1}},
	} {
		if cfg.Validate() == nil {
			t.Errorf("%s is taken for valid", name)
		}
	}
	for name, cfg := range map[string]GateConfig{
		"zero":              {},
		"long first retry":  {Retry: Backoff{First: 3 * time.Hour}},
		"short last retry":  {Retry503: Backoff{Max: 2 * time.Minute}},
		"more hops, longer": {MaxHops: 8, MaxTTL: 7 * day},
	} {
		if err := cfg.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOutcomeNames(t *testing.T) {
	for want, o := range map[string]Outcome{"unknown": Unknown, "rules": RulesKnown, "allow_all": AllowedAll,
		"disallow_all": DisallowedAll, "cached_rules": CachedRules, "following": Following, "Outcome(9)": 9} {
		if got := fmt.Sprint(o); got != want {
			t.Errorf("Outcome(%d) = %q, want %q", uint8(o), got, want)
		}
	}
}
