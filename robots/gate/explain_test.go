package gate

import (
	"context"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots/internal/robotstest"
	"github.com/decorum-crawler/decorum/storage/memory"
)

func TestGateExplain(t *testing.T) {
	ctx := context.Background()
	g := New(Config{}, memory.New(memory.Config{}))
	page := robotstest.URL(t, "https://example.com/a")
	if e, err := g.Explain(ctx, page.Origin(), page); err != nil || e.Allowed || e.SHA256 != "" {
		t.Errorf("while no rules are known: %+v, %v", e, err)
	}
	now := time.Now()
	c, err := g.Check(ctx, now, page)
	if err != nil || !c.IsForRobots() {
		t.Fatalf("clearance %+v, %v", c, err)
	}
	res := &decorum.Response{URL: c.URL(), Status: 200, Body: []byte("User-agent: *\nDisallow: /a\n")}
	if _, err := g.RecordFetch(ctx, now, c, res, nil); err != nil {
		t.Fatal(err)
	}
	e, err := g.Explain(ctx, page.Origin(), page)
	if err != nil || e.Allowed || e.Rule != "disallow: /a" || len(e.SHA256) != 64 {
		t.Errorf("got %+v, %v", e, err)
	}
}
