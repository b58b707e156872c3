package crawltest

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The sites of this file are hard to crawl because of their rules and their links.

// wildcardRulesSite has rules with wildcards, an Allow inside a Disallow, and links to closed pages.
func wildcardRulesSite() Site {
	p := newDemoSiteBuilder("library.example", "The Lending Library", RobotsSpec{
		Response: Text(`# Please mind the books.
User-agent: *
Disallow: /loans/
Allow: /loans/rules.html
Disallow: /*?sort=
Disallow: /*.bak$
`),
		IsDisallowed: isDisallowedByWildcards,
	})
	books := readDemoPageContents("books")
	shelves := []string{"Here and elsewhere", "At table", "In verse", "How things are"}
	var links []string
	for i, name := range shelves {
		dir := "/shelves/" + strconv.Itoa(i+1) + "/"
		var shelf []demoPageContent
		for j := i; j < len(books); j += len(shelves) {
			shelf = append(shelf, books[j])
		}
		p.addHTMLPage(dir, name, bulletListHTML(p.addInterlinkedPages(dir, shelf, hrefFuncForDir(dir))...))
		links = append(links, linkHTML(dir, name))
	}
	p.addHTMLPage("/loans/rules.html", "House rules",
		paragraphHTML("Four weeks, clean hands, and no telling how it ends."),
		bulletListHTML(linkHTML("/", "Back to the shelves")))
	p.addHTMLPage("/loans/staff.html", "Who has what", paragraphHTML("This page is for the staff."))
	p.addHTMLPage("/catalogue", "Catalogue", paragraphHTML("Every book, by the order in which it was given."),
		bulletListHTML(linkHTML("/catalogue?sort=author", "By author"), linkHTML("/catalogue?sort=year", "By year"),
			linkHTML("/catalogue?page=2", "More")))
	p.addHTMLPage("/catalogue?page=2", "Catalogue, continued",
		bulletListHTML(linkHTML("/catalogue", "Back"), linkHTML("/catalogue.bak", "Last year's")))
	p.addHomePage("Open every day but one. We do not say which; do come and find out.", bulletListHTML(links...),
		bulletListHTML(linkHTML("/catalogue", "Catalogue"), linkHTML("/loans/rules.html", "House rules"),
			linkHTML("/loans/1042", "Your loans"), linkHTML("/loans/staff.html", "Staff")))
	return p.Site
}

func isDisallowedByWildcards(path string) bool {
	if strings.HasPrefix(path, "/loans/rules.html") {
		return false
	}
	return strings.HasPrefix(path, "/loans/") || strings.Contains(path, "?sort=") || strings.HasSuffix(path, ".bak")
}

// relativeLinksSite has relative links, a page with BASE, and wildcards in the middle of
// its rules.
func relativeLinksSite() Site {
	p := newDemoSiteBuilder("garden.example", "The Botanical Garden", RobotsSpec{
		Response: Text("User-agent: *\nDisallow: /beds/*/nursery\nAllow: /beds/*/nursery/visit$\n"),
		IsDisallowed: func(path string) bool {
			_, rest, ok := strings.Cut(path, "/beds/")
			_, rest, deep := strings.Cut(rest, "/")
			return ok && deep && strings.HasPrefix(rest, "nursery") && rest != "nursery/visit"
		},
	})
	plants, beds := readDemoPageContents("plants"), []string{"shade", "sun", "pond", "rocks"}
	each := len(plants) / len(beds)
	for i, bed := range beds {
		dir, next := "/beds/"+bed+"/", beds[(i+1)%len(beds)]
		links := p.addInterlinkedPages(dir, plants[i*each:(i+1)*each], func(slug string) string {
			return "../" + bed + "/" + slug
		})
		p.addHTMLPage(dir, "In the "+bed, bulletListHTML(links...),
			bulletListHTML(linkHTML("../"+next+"/", "Next bed"), linkHTML("../../map/plan", "Map"),
				linkHTML("nursery/", "Nursery, for gardeners"), linkHTML("nursery/visit", "Visiting the nursery")))
		p.addHTMLPage(dir+"nursery/visit", "Visiting the nursery",
			paragraphHTML("Sundays, with a gardener, on tiptoe."), bulletListHTML(linkHTML("..", "The bed")))
		p.addHTMLPage(dir+"nursery/", "Nursery", paragraphHTML("Not yet."))
	}
	p.addPage("/map/plan", StaticPage(HTML(p.renderHTML(`<base href="/beds/">`, "Map",
		bulletListHTML(linkHTML("shade/", "Shade"), linkHTML("sun/", "Sun"), linkHTML("pond/", "Pond"),
			linkHTML("rocks/", "Rocks"), linkHTML("../map/key", "Key"))))))
	p.addHTMLPage("/map/key", "Key to the map", paragraphHTML("Green is green. Blue is wet."))
	p.addHomePage("Four beds, one pond, and a bench for each month.",
		bulletListHTML(linkHTML("beds/shade/", "Begin in the shade"), linkHTML("./map/plan", "Map")))
	return p.Site
}

// crawlDelaySite has a Crawl-delay of half a second.
func crawlDelaySite() Site {
	p := newDemoSiteBuilder("timetable.example", "The Branch Line", RobotsSpec{
		Response: Text("User-agent: *\nCrawl-delay: 0.5\nDisallow: /drivers/\n"), CrawlDelay: 500 * time.Millisecond,
		IsDisallowed: func(path string) bool { return strings.HasPrefix(path, "/drivers/") },
	})
	links := p.addInterlinkedPages("/stations/", readDemoPageContents("stations"), hrefFuncForDir("/stations/"))
	p.addHTMLPage("/stations/", "Stations", bulletListHTML(links...))
	p.addHTMLPage("/drivers/", "Drivers' room", paragraphHTML("Kettle on."))
	p.addHomePage("Fourteen stations, one track, and a train in each direction, taking turns.",
		bulletListHTML(linkHTML("/stations/", "Stations"), linkHTML("/drivers/", "Drivers")))
	return p.Site
}

// endlessCalendarSite has infinitely many pages: every month links to the next.
func endlessCalendarSite() Site {
	p := newDemoSiteBuilder("almanac.example", "The Almanac", allowAllRobots())
	p.addHomePage("A page for every month there will be.", bulletListHTML(linkHTML("/2026/01", "January 2026")))
	first := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	p.Fallback = func(r PageRequest) Response {
		month, err := time.Parse("/2006/01", r.Path)
		if err != nil || month.Before(first) {
			return Status(404)
		}
		links := []string{linkHTML(month.AddDate(0, 1, 0).Format("/2006/01"), "The month after")}
		if month.After(first) {
			links = append(links, linkHTML(month.AddDate(0, -1, 0).Format("/2006/01"), "The month before"))
		}
		last := month.AddDate(0, 1, -1)
		return HTML(p.renderHTML("", month.Format("January 2006"), bulletListHTML(links...),
			paragraphHTML(fmt.Sprintf("It begins on a %s and ends on a %s. The rest is open.",
				month.Weekday(), last.Weekday()))))
	}
	return p.Site
}

// sitemapIndexSite has a sitemap index, and pages that only a sitemap lists.
func sitemapIndexSite() Site {
	p := newDemoSiteBuilder("museum.example", "The Museum of Small Things", RobotsSpec{
		Response:     Text("User-agent: *\nDisallow: /store/sealed\n\nSitemap: http://museum.example/sitemap.xml\n"),
		IsDisallowed: func(path string) bool { return strings.HasPrefix(path, "/store/sealed") },
	})
	rooms := p.addInterlinkedPages("/rooms/", readDemoPageContents("rooms"), hrefFuncForDir("/rooms/"))
	p.addHTMLPage("/rooms/", "Rooms", bulletListHTML(rooms...))
	store := []string{"/store/sealed"}
	for _, it := range readDemoPageContents("objects") {
		p.addHTMLPage("/store/"+it.slug, it.title, paragraphHTML(it.text),
			bulletListHTML(linkHTML("/rooms/", "What is on show")))
		store = append(store, "/store/"+it.slug)
	}
	p.addHTMLPage("/store/sealed", "Sealed", paragraphHTML("Until somebody finds the key."))
	p.addPage("/sitemap.xml", StaticPage(ResponseOfType("application/xml", sitemapXML("sitemapindex", "sitemap",
		homeURL(p.Host)+"sitemap-rooms.xml", homeURL(p.Host)+"sitemap-store.xml"))))
	p.addPage("/sitemap-rooms.xml", StaticPage(ResponseOfType("application/xml",
		sitemapXML("urlset", "url", homeURL(p.Host)+"rooms/"))))
	for i := range store {
		store[i] = strings.TrimSuffix(homeURL(p.Host), "/") + store[i]
	}
	p.addPage("/sitemap-store.xml", StaticPage(ResponseOfType("application/xml",
		sitemapXML("urlset", "url", store...))))
	p.addHomePage("Everything here fits into two hands.", bulletListHTML(linkHTML("/rooms/", "Rooms")))
	return p.Site
}

// sitemapXML returns a sitemap, or an index of sitemaps.
func sitemapXML(root, entry string, urls ...string) string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + "\n")
	b.WriteString("<" + root + ` xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">` + "\n")
	for _, u := range urls {
		b.WriteString("<" + entry + "><loc>" + u + "</loc></" + entry + ">\n")
	}
	b.WriteString("</" + root + ">\n")
	return b.String()
}

// cleanParamSite has links with parameters that its Clean-param lines declare irrelevant.
func cleanParamSite() Site {
	p := newDemoSiteBuilder("market.example", "The Thursday Market", RobotsSpec{
		Response:          Text("User-agent: *\nDisallow:\nClean-param: ref&visit /stalls/\n"),
		RemoveCleanParams: removeNoiseParams,
	})
	for i, it := range readDemoPageContents("stalls") {
		next := readDemoPageContents("stalls")[(i+1)%len(readDemoPageContents("stalls"))]
		p.addHTMLPage("/stalls/"+it.slug, it.title, paragraphHTML(it.text),
			bulletListHTML(linkHTML("/stalls/"+next.slug+"?ref=next&visit="+strconv.Itoa(i), "Next stall"),
				linkHTML("/stalls/"+it.slug+"?ref=self", "This stall"),
				linkHTML("/stalls/?ref=stall", "All stalls")))
	}
	var links []string
	for i, it := range readDemoPageContents("stalls") {
		links = append(links, linkHTML("/stalls/"+it.slug+"?visit="+strconv.Itoa(i), it.title))
	}
	p.addHTMLPage("/stalls/", "Stalls", bulletListHTML(links...))
	p.addHTMLPage("/stalls/apples?day=saturday", "Apples on a Saturday",
		paragraphHTML("The same apples, in better company."))
	p.addHomePage("From six until the soup is gone.", bulletListHTML(linkHTML("/stalls/?ref=home", "All stalls"),
		linkHTML("/stalls/apples?ref=home&day=saturday", "Apples on a Saturday")))
	return p.Site
}

// removeNoiseParams removes the parameters ref and visit from paths under /stalls/.
func removeNoiseParams(path string) string {
	path, query, _ := strings.Cut(path, "?")
	var params []string
	for _, param := range strings.Split(query, "&") {
		name, _, _ := strings.Cut(param, "=")
		if param != "" && !(strings.HasPrefix(path, "/stalls/") && (name == "ref" || name == "visit")) {
			params = append(params, param)
		}
	}
	if len(params) == 0 {
		return path
	}
	return path + "?" + strings.Join(params, "&")
}
