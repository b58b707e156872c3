package oneoff

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/gate"
)

// A Fetcher asks for robots.txt once and before a page, keeps to it, and does not visit a
// host before it is due.
func TestFetcher(t *testing.T) {
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	d := project.NewFile()
	d.Agent.Contact, d.Seeds = "mailto:bot@example.com", []string{"http://shop.example/"}
	d.Fetch.AllowPrivate, d.Fetch.ConnectToRules = true, []string{"::" + v.Addr}
	d.Politeness.Delay = project.Duration(time.Millisecond)
	f, err := NewFetcher(d, gate.Config{Agent: robots.AgentFromName("decorum"), SessionStart: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	parse := func(text string) decorum.URL {
		u, err := decorum.ParseURL(text)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	home, till := parse("http://shop.example/"), parse("http://shop.example/till")
	if body, err := f.FetchRobotsBody(t.Context(), home.Origin()); err != nil || !strings.Contains(string(body), "Disallow: /till") {
		t.Errorf("robots.txt is %q, %v", body, err)
	}
	if e, err := f.ExplainVerdict(t.Context(), home.Origin(), till); err != nil || e.Allowed || len(e.SHA256) != 64 {
		t.Errorf("%v: %+v, %v", till, e, err)
	}
	if res, err := f.FetchURL(t.Context(), home); err != nil || res.Status != http.StatusOK {
		t.Errorf("%v: %+v, %v", home, res, err)
	}
	if _, err := f.FetchURL(t.Context(), till); !errors.Is(err, decorum.Disallowed) {
		t.Errorf("%v: %v, want that it is disallowed", till, err)
	}
	f.SetDue("shop.example", time.Now().Add(24*time.Hour))
	if _, err := f.FetchURL(t.Context(), home); err == nil || !strings.Contains(err.Error(), "is not to be visited before") {
		t.Errorf("before the host is due: %v", err)
	}
	if r := v.Web.Judge(crawltest.JudgeOptions{RequiredProductToken: "decorum"}); !r.OK() || r.Requests != 2 {
		t.Errorf("%d requests, want robots.txt and a page:\n%s", r.Requests, r)
	}
}
