package engine

import (
	"slices"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/crawler/project"
)

// fakeHandlers is a PageHandlerRegistry that records which handler is attached.
type fakeHandlers struct {
	names    []string
	attached []string
}

func (h *fakeHandlers) Names() []string { return h.names }

func (h *fakeHandlers) Attach(name string, _ *crawler.Crawler, _ *httpfetch.Fetcher, maxRequestBody int64) {
	if maxRequestBody == 10 {
		h.attached = append(h.attached, name)
	}
}

// The handler that a project names is attached if the program has it. Otherwise the project is refused.
func TestHandlers(t *testing.T) {
	const noHandlers = "this program has none"
	for _, tt := range []struct {
		name, handler string
		names         []string
		attached      []string
		refusal       string // part of it
	}{
		{name: "the project names no handler", names: []string{"books", "films"}},
		{name: "known", handler: "books", names: []string{"books", "films"}, attached: []string{"books"}},
		{name: "unknown", handler: "songs", names: []string{"books", "films"},
			refusal: `"songs" is not one of this program's handlers: books, films`},
		{name: "a program without handlers", handler: "songs", refusal: noHandlers},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := &fakeHandlers{names: tt.names}
			refusal := ""
			if f := CheckHandler(h, tt.handler); f != nil {
				refusal = f.Problem
			}
			if (refusal == "") != (tt.refusal == "") || !strings.Contains(refusal, tt.refusal) {
				t.Errorf("refused with %q, want %q", refusal, tt.refusal)
			}
			attachHandler(h, nil, project.Project{Handler: tt.handler,
				Fetch: project.FetchSettings{MaxRequestBody: 10}}, nil)
			if !slices.Equal(h.attached, tt.attached) {
				t.Errorf("attached %q, want %q", h.attached, tt.attached)
			}
		})
	}
	if f := CheckHandler(nil, "songs"); f == nil || !strings.Contains(f.Problem, noHandlers) {
		t.Errorf("nil Handlers: %v, want a refusal", f)
	}
	attachHandler(nil, nil, project.Project{Handler: "songs"}, nil)
}
