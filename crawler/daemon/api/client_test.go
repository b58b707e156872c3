package api

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"
)

// Each method of a client makes the matching call of the daemon, and returns the daemon's answer.
func TestClient(t *testing.T) {
	d := &fakeDaemon{fillsFields: true}
	server := httptest.NewServer(newServer(t, d))
	defer server.Close()
	c := &Client{Server: server.URL + "/", Token: operateToken, HTTP: server.Client()}
	ctx := t.Context()
	if all, err := c.Projects(ctx); err != nil || len(all) != 1 || all[0].Stats.Pages == 0 {
		t.Errorf("projects %+v, %v", all, err)
	}
	if page, err := c.Hosts(ctx, "books", HostQuery{Search: "shop", State: "set aside", Sort: "queued",
		Descending: true, Offset: 5, Limit: 7}); err != nil || page.Offset != 5 {
		t.Errorf("hosts %+v, %v", page, err)
	}
	if all, err := c.ProjectActiveVisits(ctx, "books"); err != nil || len(all) != 1 {
		t.Errorf("visits %v, %v", all, err)
	}
	if all, err := c.ProjectThroughput(ctx, "books", true); err != nil || len(all) != 1 {
		t.Errorf("throughput %v, %v", all, err)
	}
	if err := c.PutProject(ctx, "books", []byte("seeds: []")); err != nil {
		t.Error(err)
	}
	if err := c.ControlProject(ctx, "books", ActionPause); err != nil {
		t.Error(err)
	}
	if p, err := c.Project(ctx, "books"); err != nil || p.State != StateRunning {
		t.Errorf("project %+v, %v", p, err)
	}
	if all, err := c.ReloadProjects(ctx); err != nil || len(all) != 1 || all[0].Outcome == "" {
		t.Errorf("reload %+v, %v", all, err)
	}
	b, err := c.SetBrake(ctx, "example.com", BrakeRequest{Delay: Milliseconds(time.Minute), Reason: "asked to",
		Duration: Milliseconds(time.Hour)})
	if err != nil || b.Host != "example.com" || b.By != "operator" || b.Expires.Sub(b.Since) != time.Hour {
		t.Errorf("brake %+v, %v", b, err)
	}
	if all, err := c.Brakes(ctx); err != nil || len(all) != 1 || all[0] != *b {
		t.Errorf("brakes %+v, %v", all, err)
	}
	if err := c.LiftBrake(ctx, "example.com", "they say so"); err != nil {
		t.Error(err)
	}
	if calls, want := d.recordedCalls(), []string{"hosts shop set aside queued", "put books seeds: []", "pause books",
		"reload", "brake example.com", "lift example.com"}; !slices.Equal(calls, want) {
		t.Errorf("the daemon did %q, want %q", calls, want)
	}
	var page AuditPage
	if err := c.getJSON(ctx, "/api/v1/audit", &page); err != nil || page.Entries[0].Reason != "they say so" {
		t.Errorf("the newest audit page is %+v, %v", page, err)
	}
	if r, err := c.RotateToken(ctx, "operator"); err != nil || *r != (TokenRotation{"operator", RoleOperate,
		"/data/token"}) {
		t.Errorf("rotation %+v, %v", r, err)
	}
	c.Token, c.Reason = rotatedToken, "of the client"
	if err := c.ControlProject(ctx, "books", ActionStart); err != nil {
		t.Error(err)
	}
	if err := c.getJSON(ctx, "/api/v1/audit", &page); err != nil || page.Entries[0].Reason != c.Reason {
		t.Errorf("the newest audit page is %+v, %v", page, err)
	}
}

// A daemon's problem comes back as a *Problem, and an answer that is not a daemon's is an error.
func TestClientIsRefused(t *testing.T) {
	server := httptest.NewServer(newServer(t, &fakeDaemon{err: Conflict("not now")}))
	defer server.Close()
	var p *Problem
	c := &Client{Server: server.URL, Token: operateToken}
	if err := c.ControlProject(t.Context(), "books", ActionStop); !errors.As(err, &p) ||
		p.Status != http.StatusConflict || err.Error() != "not now" {
		t.Errorf("error %v", err)
	}
	c.Token = "guess"
	if err := c.ControlProject(t.Context(), "books", ActionStop); !errors.As(err, &p) ||
		p.Status != http.StatusUnauthorized {
		t.Errorf("error %v", err)
	}
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusTeapot)
		}
		w.Write([]byte("<html>"))
	}))
	defer other.Close()
	c.Server = other.URL
	if _, err := c.Projects(t.Context()); err == nil {
		t.Error("an HTML page was accepted as a list of projects")
	}
	if err := c.ControlProject(t.Context(), "books", ActionStop); !errors.As(err, &p) || p.Status != http.StatusTeapot {
		t.Errorf("error %v", err)
	}
}
