package crawltest

import (
	"net/http"
	"strings"
	"time"
)

// The other part of town: what is hard here is in the servers. A host has one
// page that keeps failing, at most, and it is found last: nothing is left then
// that would have to wait until the host has been forgiven.

// post has redirects: to another host, to what is closed there, in a chain and
// in a loop.
func post() Site {
	p := newPlace("post.example", "The Post Office", allowAll())
	links := p.series("/letters/", items("letters"), under("/letters/"))
	p.page("/letters/", "Letters", list(links...))
	p.at("/go/library", Always(Redirect(http.StatusFound, "http://library.example/shelves/3/moss")))
	p.at("/go/staff", Always(Redirect(http.StatusMovedPermanently, "http://library.example/loans/staff.html")))
	p.at("/round/a", Always(Redirect(http.StatusFound, "/round/b")))
	p.at("/round/b", Always(Redirect(http.StatusFound, "/round/a")))
	p.at("/forward/1", Always(Redirect(http.StatusSeeOther, "2")))
	p.at("/forward/2", Always(Redirect(http.StatusTemporaryRedirect, "3?care=of")))
	p.at("/forward/3", Always(Redirect(http.StatusPermanentRedirect, "../letters/to-the-fog")))
	p.front("Letters without an address are read aloud, and often somebody stands up.",
		list(link("/letters/", "Letters"), link("/go/library", "For the library"), link("/go/staff", "For its staff"),
			link("/round/a", "Returned to sender"), link("/forward/1", "Forwarded"), link("HTTP://LIBRARY.Example:80/catalogue#top", "Catalogue")))
	return p.Site
}

// annex has no robots.txt of its own: it sends those who ask to the library's.
func annex() Site {
	p := newPlace("annex.example", "The Map Annex", Robots{
		Answer:   Redirect(http.StatusMovedPermanently, "http://library.example/robots.txt"),
		Disallow: libraryCloses,
	})
	links := p.series("/maps/", items("maps"), under("/maps/"))
	p.page("/maps/", "Maps", append([]string{list(links...)}, list(link("/maps/?sort=scale", "By scale")))...)
	p.page("/loans/maps.html", "Maps on loan", para("Folded, we fear."))
	p.front("The library's maps, flat.", list(link("/maps/", "Maps"), link("/loans/maps.html", "On loan")))
	p.breakOnce("/maps/the-wells", Unfinished)
	return p.Site
}

// weather answers 503 when asked for its rules: nobody may come in.
func weather() Site {
	p := newPlace("weather.example", "The Weather Station", Robots{Answer: Status(http.StatusServiceUnavailable)})
	p.page("/today", "Today", para("Some."))
	p.front("Measuring.", list(link("/today", "Today")))
	return p.Site
}

// lighthouse never answers when asked for its rules.
func lighthouse() Site {
	p := newPlace("lighthouse.example", "The Lighthouse", Robots{Answer: Answer{Fault: Hang}})
	p.page("/log", "Log", para("Ships."))
	p.front("On, off, on.", list(link("/log", "Log")))
	return p.Site
}

// archive has what is no HTML, an old encoding, and links not to be followed.
func archive() Site {
	p := newPlace("archive.example", "The Town Archive", allowAll())
	links := p.series("/papers/", items("papers"), under("/papers/"))
	p.page("/papers/", "Papers", list(links...))
	p.at("/inventory.txt", Always(Text("Boxes: 214\nOpened: 39\nRegretted: 1\nhttp://archive.example/not-a-link\n")))
	p.at("/plan.pdf", Always(Typed("application/pdf", "%PDF-1.4\n1 0 obj << /Type /Catalog >> endobj\ntrailer << /Root 1 0 R >>\n%%EOF\n")))
	old := *p
	old.charset = "iso-8859-1"
	latin := old.html("", "Café accounts", para("Two crèmes, one brûlée."), list(link("/papers/", "Papers")))
	p.at("/1987.html", Always(Typed("text/html; charset=iso-8859-1", latin1(latin))))
	p.at("/visitors", Always(HTML(p.html(`<meta name="robots" content="nofollow">`, "Visitors' book", list(link("/visitors/spam", "Cheap hats"))))))
	p.page("/visitors/spam", "Hats", para("Nobody should come here: every link to it says so."))
	p.front("We keep it. We do not say that we can find it.",
		list(link("/papers/", "Papers"), link("/inventory.txt", "Inventory"), link("/plan.pdf", "Plan of the cellar"), link("/1987.html", "1987"),
			link("/visitors", "Visitors' book"), link("/visitors/spam", "Hats", `rel="nofollow"`),
			link("mailto:keeper@archive.example", "Write to us"), link("#top", "Up")))
	return p.Site
}

// latin1 returns text in ISO-8859-1.
func latin1(text string) string {
	var b strings.Builder
	for _, c := range text {
		if c > 0xff {
			c = '-'
		}
		b.WriteByte(byte(c))
	}
	return b.String()
}

// meadow has no robots.txt, pages that are gone, and a page that arrives in
// half the first time.
func meadow() Site {
	p := newPlace("meadow.example", "The Meadow", Robots{})
	p.Robots = nil
	links := p.series("/bees/", items("bees"), under("/bees/"))
	p.page("/bees/", "Bees", list(links...))
	p.at("/skylark", Always(Status(http.StatusGone)))
	p.front("Unmown.", list(link("/bees/", "Bees"), link("/butterflies", "Butterflies"), link("/skylark", "Skylark")))
	p.breakOnce("/bees/ivy-bee", Short)
	return p.Site
}

// workshop has a page that is always broken.
func workshop() Site {
	p := newPlace("workshop.example", "The Workshop", allowAll())
	links := p.series("/tools/", items("tools"), under("/tools/"), link("/repairs", "Under repair"))
	p.page("/tools/", "Tools", list(links...))
	p.at("/repairs", Always(Status(http.StatusInternalServerError)))
	p.front("Mend first.", list(link("/tools/", "Tools")))
	return p.Site
}

// cafe asks those who want the special to come back in a second.
func cafe() Site {
	p := newPlace("cafe.example", "The Station Café", allowAll())
	links := p.series("/menu/", items("dishes"), under("/menu/"))
	p.page("/menu/", "Menu", list(links...))
	busy := Status(http.StatusTooManyRequests)
	busy.Header.Set("Retry-After", "1")
	p.page("/special", "Today's special", para("It was worth the wait."))
	p.firstTime("/special", busy)
	p.front("Sit anywhere. The window is taken.", list(link("/menu/", "Menu"), link("/special", "Today's special")))
	return p.Site
}

// river has a page that takes its time, and one that is reset the first time.
func river() Site {
	p := newPlace("river.example", "Along the River", allowAll())
	links := p.series("/bridges/", items("bridges"), under("/bridges/"))
	p.page("/bridges/", "Bridges", list(links...))
	slow := HTML(p.html("", "Upstream", para(strings.Repeat("It comes down slowly. ", 40)), list(link("/bridges/ferry-steps", "Ferry steps"))))
	slow.Spread = 1200 * time.Millisecond
	p.at("/upstream", Always(slow))
	p.front("Downhill, mostly.", list(link("/bridges/", "Bridges"), link("/upstream", "Upstream")))
	p.breakOnce("/bridges/chain-bridge", Reset)
	return p.Site
}

// radio compresses its pages, one of them badly, and has programmes that only its
// feed lists.
func radio() Site {
	p := newPlace("radio.example", "Valley Radio", allowAll())
	p.feed = "/feed.xml"
	p.page("/tonight", "Tonight", para("What the moon sounds like, for those who take the feed."))
	p.page("/tomorrow", "Tomorrow", para("The same, with clouds."))
	p.at(p.feed, Always(Typed("application/rss+xml", feed("/tonight", "tomorrow", home(p.Host)+"programmes/"))))
	links := p.series("/programmes/", items("programmes"), under("/programmes/"), link("/static", "Between the stations"))
	p.page("/programmes/", "Programmes", list(links...))
	p.page("/static", "Static", para(strings.Repeat("Krrr. ", 100)))
	p.front("On 88 and a half.", list(link("/programmes/", "Programmes")))
	for path, page := range p.Pages {
		a := page(Request{})
		a.Gzip = true
		if path == "/static" {
			a.Fault = BadGzip
		}
		p.at(path, Always(a))
	}
	return p.Site
}

// harbour has a page whose connection is always reset.
func harbour() Site {
	p := newPlace("harbour.example", "The Harbour", allowAll())
	links := p.series("/ships/", items("ships"), under("/ships/"), link("/wreck", "The wreck"))
	p.page("/ships/", "Ships", list(links...))
	p.at("/wreck", Always(Answer{Fault: Reset}))
	p.front("Mind the ropes.", list(link("/ships/", "Ships")))
	return p.Site
}

// breakOnce makes a page fail the first time it is asked for.
func (p *place) breakOnce(path string, f Fault) {
	a := p.Pages[path](Request{})
	a.Fault = f
	p.firstTime(path, a)
}

// firstTime makes a page answer otherwise the first time it is asked for.
func (p *place) firstTime(path string, first Answer) {
	later := p.Pages[path]
	p.at(path, func(r Request) Answer {
		if r.Nth == 1 {
			return first
		}
		return later(r)
	})
}
