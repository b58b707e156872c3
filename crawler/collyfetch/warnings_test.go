package collyfetch_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum/crawler/collyfetch"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
)

// TestLossesAreLogged: what a crawl loses because of a setting or a missing call is logged, once.
func TestLossesAreLogged(t *testing.T) {
	in := crawltest.Text("welcome")
	in.Header.Set("Set-Cookie", "session=s3; Path=/")
	sets, plain := crawltest.StaticPage(in), crawltest.StaticPage(crawltest.Text("plain"))
	type session struct {
		*testing.T
		*collyfetch.Crawl
	}
	post := func(s *session, path string) {
		must(s.T, s.Post("http://a.test"+path, map[string]string{"name": "ada"}))
	}
	visit := func(s *session, path string) { must(s.T, s.Visit("http://a.test"+path)) }
	const cookies = "set WrapOptions.KeepCookies"
	for name, tt := range map[string]struct {
		keepCookies bool
		program     func(*session)
		want        string // in each line of log
		lines       int
	}{
		"login": {program: func(s *session) { post(s, "/login"); visit(s, "/login") }, want: cookies, lines: 1},
		"login form that sets the cookie": {program: func(s *session) { visit(s, "/"); post(s, "/form") },
			want: cookies, lines: 1},
		"login with cookies":     {keepCookies: true, program: func(s *session) { post(s, "/login"); visit(s, "/") }},
		"cookies without a form": {program: func(s *session) { visit(s, "/") }},
		"two Clones": {program: func(s *session) {
			for range 2 {
				clone := s.Clone()
				if clone.Visit("http://a.test/") == nil || clone.Visit("http://a.test/form") == nil {
					s.Error("a Clone that has not joined got no error")
				}
			}
		}, want: "call JoinCollector(name, clone)", lines: 2},
		"a Clone of colly": {program: func(s *session) {
			clone := s.Collector.Collector.Clone()
			if clone.Visit("http://a.test/") == nil {
				s.Error("a Clone that has not joined got no error")
			}
		}, want: "call JoinCollector(name, clone)", lines: 1},
		"a Clone that has joined": {program: func(s *session) {
			clone := s.Clone()
			must(s.T, s.JoinCollector("clone", clone))
			must(s.T, clone.Visit("http://a.test/"))
			must(s.T, s.Crawl.Run(s.Context()))
		}},
		"no Run": {program: func(s *session) {
			must(s.T, s.Collector.Visit("http://a.test/"))
			must(s.T, s.Collector.Visit("http://a.test/form"))
			must(s.T, s.Collector.Visit("http://a.test/form"))
		}, want: "no run has visited them: call Run, Wait or, for a queue, RunQueue of the Crawl\" requests=2",
			lines: 1},
		"Run": {program: func(s *session) {
			must(s.T, s.Collector.Visit("http://a.test/"))
			must(s.T, s.Crawl.Run(s.Context()))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				o := quietOptions(crawltest.New(crawltest.Site{Host: "a.test",
					Pages:            map[string]crawltest.PageFunc{"/": sets, "/form": plain, "/login": sets},
					OtherMethodPages: map[string]crawltest.PageFunc{"/form": plain, "/login": sets}}))
				o.KeepCookies, o.Log = tt.keepCookies, slog.New(slog.NewTextHandler(&log, nil))
				crawl, err := collyfetch.Wrap(colly.NewCollector(), o)
				must(t, err)
				tt.program(&session{t, crawl})
				must(t, crawl.Close())
				if n := strings.Count(log.String(), "\n"); n != tt.lines || strings.Count(log.String(), tt.want) < n {
					t.Errorf("logged %q, want %d lines with %q", log.String(), tt.lines, tt.want)
				}
			})
		})
	}
}
