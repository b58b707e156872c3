package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum/crawler/collyfetch"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
)

// TestPriority: news found late is visited before other pages found earlier, and no page is visited
// before the host is due.
func TestPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := func(body string) crawltest.PageFunc { return crawltest.StaticPage(crawltest.HTML(body)) }
		web := crawltest.New(crawltest.Site{Host: "example.com", Fallback: page("end"),
			Pages: map[string]crawltest.PageFunc{
				"/": page("<a href=/archive/1>1</a><a href=/about>2</a><a href=/news/1>3</a><a " +
					"href=/imprint>4</a>"),
				"/news/1": page("<a href=/news/2>next</a>"),
			}})
		var out strings.Builder
		o := collyfetch.WrapOptions{Agent: "newsbot/1.0", Contact: "https://example.org/bot",
			FetchConfig: httpfetch.Config{Transport: web}}
		if err := crawlAndPrint(t.Context(), "http://example.com/", o, &out); err != nil {
			t.Fatal(err)
		}
		want := []string{"/", "/news/1", "/news/2", "/about", "/imprint", "/archive/1"}
		if got := strings.Fields(strings.ReplaceAll(out.String(), "http://example.com", "")); strings.Join(got,
			" ") != strings.Join(want, " ") {
			t.Errorf("visited %q, want %q", got, want)
		}
		if r := web.Judge(crawltest.JudgeOptions{RequiredProductToken: "newsbot", MinDelay: time.Second}); !r.OK() {
			t.Error(r)
		}
	})
}
