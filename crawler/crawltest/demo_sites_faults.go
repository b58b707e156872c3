package crawltest

import (
	"net/http"
	"strings"
	"time"
)

// The sites of this file are hard to crawl because of their servers. A host has at most one page that
// keeps failing, and a crawler finds it last, so that no other page waits for the end of the host's
// back-off.

// redirectsSite has redirects: to another host, to a closed page there, in a chain and in a loop.
func redirectsSite() Site {
	p := newDemoSiteBuilder("post.example", "The Post Office", allowAllRobots())
	links := p.addInterlinkedPages("/letters/", readDemoPageContents("letters"), hrefFuncForDir("/letters/"))
	p.addHTMLPage("/letters/", "Letters", bulletListHTML(links...))
	p.addPage("/go/library", StaticPage(Redirect(http.StatusFound, "http://library.example/shelves/3/moss")))
	p.addPage("/go/staff", StaticPage(Redirect(http.StatusMovedPermanently, "http://library.example/loans/staff.html")))
	p.addPage("/round/a", StaticPage(Redirect(http.StatusFound, "/round/b")))
	p.addPage("/round/b", StaticPage(Redirect(http.StatusFound, "/round/a")))
	p.addPage("/forward/1", StaticPage(Redirect(http.StatusSeeOther, "2")))
	p.addPage("/forward/2", StaticPage(Redirect(http.StatusTemporaryRedirect, "3?care=of")))
	p.addPage("/forward/3", StaticPage(Redirect(http.StatusPermanentRedirect, "../letters/to-the-fog")))
	p.addHomePage("Letters without an address are read aloud, and often somebody stands up.",
		bulletListHTML(linkHTML("/letters/", "Letters"), linkHTML("/go/library", "For the library"),
			linkHTML("/go/staff", "For its staff"),
			linkHTML("/round/a", "Returned to sender"), linkHTML("/forward/1", "Forwarded"),
			linkHTML("HTTP://LIBRARY.Example:80/catalogue#top", "Catalogue")))
	return p.Site
}

// redirectedRobotsSite redirects requests for its robots.txt to the library's.
func redirectedRobotsSite() Site {
	p := newDemoSiteBuilder("annex.example", "The Map Annex", RobotsSpec{
		Response:     Redirect(http.StatusMovedPermanently, "http://library.example/robots.txt"),
		IsDisallowed: isDisallowedByWildcards,
	})
	links := p.addInterlinkedPages("/maps/", readDemoPageContents("maps"), hrefFuncForDir("/maps/"))
	p.addHTMLPage("/maps/", "Maps", append([]string{bulletListHTML(links...)},
		bulletListHTML(linkHTML("/maps/?sort=scale", "By scale")))...)
	p.addHTMLPage("/loans/maps.html", "Maps on loan", paragraphHTML("Folded, we fear."))
	p.addHomePage("The library's maps, flat.",
		bulletListHTML(linkHTML("/maps/", "Maps"), linkHTML("/loans/maps.html", "On loan")))
	p.setFirstResponseFault("/maps/the-wells", MissingLastChunk)
	return p.Site
}

// unavailableRobotsSite answers 503 to requests for robots.txt, so that no page may be requested.
func unavailableRobotsSite() Site {
	p := newDemoSiteBuilder("weather.example", "The Weather Station",
		RobotsSpec{Response: Status(http.StatusServiceUnavailable)})
	p.addHTMLPage("/today", "Today", paragraphHTML("Some."))
	p.addHomePage("Measuring.", bulletListHTML(linkHTML("/today", "Today")))
	return p.Site
}

// hangingRobotsSite never answers requests for robots.txt.
func hangingRobotsSite() Site {
	p := newDemoSiteBuilder("lighthouse.example", "The Lighthouse", RobotsSpec{Response: Response{Fault: Hang}})
	p.addHTMLPage("/log", "Log", paragraphHTML("Ships."))
	p.addHomePage("On, off, on.", bulletListHTML(linkHTML("/log", "Log")))
	return p.Site
}

// nonHTMLAndNofollowSite has files other than HTML, a page in an old encoding, and nofollow links.
func nonHTMLAndNofollowSite() Site {
	p := newDemoSiteBuilder("archive.example", "The Town Archive", allowAllRobots())
	links := p.addInterlinkedPages("/papers/", readDemoPageContents("papers"), hrefFuncForDir("/papers/"))
	p.addHTMLPage("/papers/", "Papers", bulletListHTML(links...))
	p.addPage("/inventory.txt", StaticPage(Text("Boxes: 214\nOpened: 39\nRegretted: "+
		"1\nhttp://archive.example/not-a-link\n")))
	p.addPage("/plan.pdf", StaticPage(ResponseOfType("application/pdf", "%PDF-1.4\n1 0 obj << /Type /Catalog >> "+
		"endobj\ntrailer << /Root 1 0 R >>\n%%EOF\n")))
	old := *p
	old.charset = "iso-8859-1"
	latin := old.renderHTML("", "Café accounts", paragraphHTML("Two crèmes, one brûlée."),
		bulletListHTML(linkHTML("/papers/", "Papers")))
	p.addPage("/1987.html", StaticPage(ResponseOfType("text/html; charset=iso-8859-1", encodeLatin1(latin))))
	p.addPage("/visitors", StaticPage(HTML(p.renderHTML(`<meta name="robots" content="nofollow">`, "Visitors' book",
		bulletListHTML(linkHTML("/visitors/spam", "Cheap hats"))))))
	p.addHTMLPage("/visitors/spam", "Hats", paragraphHTML("Crawlers should not come here: every link to it says so."))
	p.addHomePage("We keep it. We do not say that we can find it.",
		bulletListHTML(linkHTML("/papers/", "Papers"), linkHTML("/inventory.txt", "Inventory"),
			linkHTML("/plan.pdf", "Plan of the cellar"), linkHTML("/1987.html", "1987"),
			linkHTML("/visitors", "Visitors' book"), linkHTML("/visitors/spam", "Hats", `rel="nofollow"`),
			linkHTML("mailto:keeper@archive.example", "Write to us"), linkHTML("#top", "Up")))
	return p.Site
}

// encodeLatin1 returns text in ISO-8859-1.
func encodeLatin1(text string) string {
	var b strings.Builder
	for _, c := range text {
		if c > 0xff {
			c = '-'
		}
		b.WriteByte(byte(c))
	}
	return b.String()
}

// missingRobotsSite has no robots.txt, pages that are gone, and a page whose first answer breaks off
// in the middle.
func missingRobotsSite() Site {
	p := newDemoSiteBuilder("meadow.example", "The Meadow", RobotsSpec{})
	p.Robots = nil
	links := p.addInterlinkedPages("/bees/", readDemoPageContents("bees"), hrefFuncForDir("/bees/"))
	p.addHTMLPage("/bees/", "Bees", bulletListHTML(links...))
	p.addPage("/skylark", StaticPage(Status(http.StatusGone)))
	p.addHomePage("Unmown.", bulletListHTML(linkHTML("/bees/", "Bees"), linkHTML("/butterflies", "Butterflies"),
		linkHTML("/skylark", "Skylark")))
	p.setFirstResponseFault("/bees/ivy-bee", ShortBody)
	return p.Site
}

// serverErrorSite has a page that always answers 500.
func serverErrorSite() Site {
	p := newDemoSiteBuilder("workshop.example", "The Workshop", allowAllRobots())
	links := p.addInterlinkedPages("/tools/", readDemoPageContents("tools"), hrefFuncForDir("/tools/"),
		linkHTML("/repairs", "Under repair"))
	p.addHTMLPage("/tools/", "Tools", bulletListHTML(links...))
	p.addPage("/repairs", StaticPage(Status(http.StatusInternalServerError)))
	p.addHomePage("Mend first.", bulletListHTML(linkHTML("/tools/", "Tools")))
	return p.Site
}

// retryAfterSite has a page whose first answer has a Retry-After of a second.
func retryAfterSite() Site {
	p := newDemoSiteBuilder("cafe.example", "The Station Café", allowAllRobots())
	links := p.addInterlinkedPages("/menu/", readDemoPageContents("dishes"), hrefFuncForDir("/menu/"))
	p.addHTMLPage("/menu/", "Menu", bulletListHTML(links...))
	busy := Status(http.StatusTooManyRequests)
	busy.Header.Set("Retry-After", "1")
	p.addHTMLPage("/special", "Today's special", paragraphHTML("It was worth the wait."))
	p.setFirstResponse("/special", busy)
	p.addHomePage("Sit anywhere. The window is taken.",
		bulletListHTML(linkHTML("/menu/", "Menu"), linkHTML("/special", "Today's special")))
	return p.Site
}

// slowPageSite has a slow page, and a page whose first answer is a connection reset.
func slowPageSite() Site {
	p := newDemoSiteBuilder("river.example", "Along the River", allowAllRobots())
	links := p.addInterlinkedPages("/bridges/", readDemoPageContents("bridges"), hrefFuncForDir("/bridges/"))
	p.addHTMLPage("/bridges/", "Bridges", bulletListHTML(links...))
	slow := HTML(p.renderHTML("", "Upstream", paragraphHTML(strings.Repeat("It comes down slowly. ", 40)),
		bulletListHTML(linkHTML("/bridges/ferry-steps", "Ferry steps"))))
	slow.BodyDuration = 1200 * time.Millisecond
	p.addPage("/upstream", StaticPage(slow))
	p.addHomePage("Downhill, mostly.", bulletListHTML(linkHTML("/bridges/", "Bridges"),
		linkHTML("/upstream", "Upstream")))
	p.setFirstResponseFault("/bridges/chain-bridge", Reset)
	return p.Site
}

// gzipAndFeedSite compresses its pages, one of them with damage, and has pages that only its feed
// lists.
func gzipAndFeedSite() Site {
	p := newDemoSiteBuilder("radio.example", "Valley Radio", allowAllRobots())
	p.feedPath = "/feed.xml"
	p.addHTMLPage("/tonight", "Tonight", paragraphHTML("What the moon sounds like, for those who take the feed."))
	p.addHTMLPage("/tomorrow", "Tomorrow", paragraphHTML("The same, with clouds."))
	p.addPage(p.feedPath, StaticPage(ResponseOfType("application/rss+xml",
		feedXML("/tonight", "tomorrow", homeURL(p.Host)+"programmes/"))))
	links := p.addInterlinkedPages("/programmes/", readDemoPageContents("programmes"), hrefFuncForDir("/programmes/"),
		linkHTML("/static", "Between the stations"))
	p.addHTMLPage("/programmes/", "Programmes", bulletListHTML(links...))
	p.addHTMLPage("/static", "Static", paragraphHTML(strings.Repeat("Krrr. ", 100)))
	p.addHomePage("On 88 and a half.", bulletListHTML(linkHTML("/programmes/", "Programmes")))
	for path, page := range p.Pages {
		a := page(PageRequest{})
		a.GzipIfAccepted = true
		if path == "/static" {
			a.Fault = BadGzip
		}
		p.addPage(path, StaticPage(a))
	}
	return p.Site
}

// connectionResetSite has a page whose connection is always reset.
func connectionResetSite() Site {
	p := newDemoSiteBuilder("harbour.example", "The Harbour", allowAllRobots())
	links := p.addInterlinkedPages("/ships/", readDemoPageContents("ships"), hrefFuncForDir("/ships/"),
		linkHTML("/wreck", "The wreck"))
	p.addHTMLPage("/ships/", "Ships", bulletListHTML(links...))
	p.addPage("/wreck", StaticPage(Response{Fault: Reset}))
	p.addHomePage("Mind the ropes.", bulletListHTML(linkHTML("/ships/", "Ships")))
	return p.Site
}

// setFirstResponseFault makes the first request for a page fail.
func (p *demoSiteBuilder) setFirstResponseFault(path string, f ResponseFault) {
	a := p.Pages[path](PageRequest{})
	a.Fault = f
	p.setFirstResponse(path, a)
}

// setFirstResponse replaces the answer to the first request for a page.
func (p *demoSiteBuilder) setFirstResponse(path string, first Response) {
	later := p.Pages[path]
	p.addPage(path, func(r PageRequest) Response {
		if r.NthForURL == 1 {
			return first
		}
		return later(r)
	})
}
