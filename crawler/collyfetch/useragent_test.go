package collyfetch_test

import (
	"strings"
	"testing"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum/crawler/collyfetch"
	"github.com/decorum-crawler/decorum/crawler/internal/httpheader"
	"github.com/decorum-crawler/decorum/robots"
)

// TestInvalidAgent: Wrap refuses an agent that is invalid in a header, or with which servers would
// refuse every request.
func TestInvalidAgent(t *testing.T) {
	long := strings.Repeat("x", httpheader.MaxProductBytes+1)
	for _, agent := range []string{long, "bot/" + long, "bot/1\x7f", "bot/1\n", "bot/\u00fc"} {
		if c, err := collyfetch.Wrap(colly.NewCollector(),
			collyfetch.WrapOptions{Agent: agent, Contact: "mailto:bot@example.com"}); err == nil {
			t.Errorf("agent %q is taken", agent)
			c.Close()
		}
	}
}

// TestIdentityOnce: Agent and Contact alone say whose crawl it is. Wrap refuses another name elsewhere,
// and keeps the wider tokens of an Agent of the same name.
func TestIdentityOnce(t *testing.T) {
	other, err := robots.NewAgent("otherbot")
	must(t, err)
	wider, err := robots.NewAgent("testbot", "wider")
	must(t, err)
	for want, set := range map[string]func(*collyfetch.WrapOptions){
		"FetchConfig.UserAgent": func(o *collyfetch.WrapOptions) { o.FetchConfig.UserAgent = "x/1 (+https://x.test/)" },
		"From":                  func(o *collyfetch.WrapOptions) { o.FetchConfig.From = "you@x.test" },
		"RobotsConfig.Agent":    func(o *collyfetch.WrapOptions) { o.RobotsConfig.Agent = other },
		"Settings.ProductToken": func(o *collyfetch.WrapOptions) { o.Settings.ProductToken = "otherbot" },
		"":                      func(o *collyfetch.WrapOptions) { o.RobotsConfig.Agent = wider },
	} {
		o := quietOptions(smallWeb())
		o.Contact = "mailto:bot@example.com"
		set(&o)
		c, err := collyfetch.Wrap(colly.NewCollector(), o)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("Wrap returned %v, want an error with %q", err, want)
		}
		if err == nil {
			must(t, c.Close())
		}
	}
}
